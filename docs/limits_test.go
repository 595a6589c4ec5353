// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// limitName matches the names that say which time-out or limit a constant is.
var limitName = regexp.MustCompile(`(Timeout|Interval|Limit)$|^([mM]ax|[mM]in)[A-Z]`)

// limit is a constant that bounds something.
type limit struct{ name, value, text string }

// constants evaluates the constants of a package as far as they are numbers and times.
type constants map[string]ast.Expr

// value is that of an expression, and whether it is a time. It is nil for what is neither number nor time.
func (c constants) value(e ast.Expr) (v constant.Value, isTime bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.INT || e.Kind == token.FLOAT {
			return constant.MakeFromLiteral(e.Value, e.Kind, 0), false
		}
	case *ast.ParenExpr:
		return c.value(e.X)
	case *ast.Ident:
		if known := c[e.Name]; known != nil {
			return c.value(known)
		}
	case *ast.SelectorExpr:
		unit, ok := map[string]time.Duration{"Hour": time.Hour, "Minute": time.Minute, "Second": time.Second, "Millisecond": time.Millisecond}[e.Sel.Name]
		if pkg, isName := e.X.(*ast.Ident); ok && isName && pkg.Name == "time" {
			return constant.MakeInt64(int64(unit)), true
		}
	case *ast.BinaryExpr:
		x, xTime := c.value(e.X)
		y, yTime := c.value(e.Y)
		if x == nil || y == nil {
			return nil, false
		}
		if e.Op == token.SHL {
			by, _ := constant.Uint64Val(y)
			return constant.Shift(x, e.Op, uint(by)), xTime
		}
		op := e.Op
		if whole := x.Kind() == constant.Int && y.Kind() == constant.Int; op == token.QUO && whole {
			op = token.QUO_ASSIGN // the division of integers, in go/constant
		}
		return constant.BinaryOp(x, op, y), xTime || yTime
	}
	return nil, false
}

// limitsOf are the constants of a package that bound something, in the order of its files.
func limitsOf(t *testing.T, files []string) []limit {
	t.Helper()
	all, specs := constants{}, []*ast.ValueSpec(nil)
	texts := map[*ast.ValueSpec]string{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			above := group.Doc.Text()
			for _, s := range group.Specs {
				spec := s.(*ast.ValueSpec)
				for i, value := range spec.Values {
					all[spec.Names[i].Name] = value
				}
				// A comment stands above a constant, behind it, or above the first of those that it speaks of.
				if text := spec.Doc.Text() + spec.Comment.Text(); text != "" {
					above = text
				}
				specs, texts[spec] = append(specs, spec), strings.Join(strings.Fields(above), " ")
			}
		}
	}
	var out []limit
	for _, spec := range specs {
		for i, value := range spec.Values {
			v, isTime := all.value(value)
			if name := spec.Names[i].Name; v != nil && (isTime || limitName.MatchString(name)) {
				out = append(out, limit{name, shown(v, isTime), texts[spec]})
			}
		}
	}
	return out
}

// shown is a value as people write it.
func shown(v constant.Value, isTime bool) string {
	n, whole := constant.Int64Val(constant.ToInt(v))
	switch {
	case isTime:
		text := time.Duration(n).String()
		for _, zero := range []string{"m0s", "h0m"} {
			if strings.HasSuffix(text, zero) {
				text = text[:len(text)-2]
			}
		}
		return text
	case !whole:
		f, _ := constant.Float64Val(v)
		return strconv.FormatFloat(f, 'g', 4, 64)
	}
	return strconv.FormatInt(n, 10)
}

// TestThePageOfLimitsIsThatOfTheConstants compares contributors/limits.md with the constants of the operator.
func TestThePageOfLimitsIsThatOfTheConstants(t *testing.T) {
	var out strings.Builder
	goFiles(t, []string{"cmd", "internal"}, func(dir string, files []string) {
		if strings.HasPrefix(dir, "internal/testing") || dir == "internal/slurm/fake" {
			return
		}
		limits := limitsOf(t, files)
		if len(limits) > 0 {
			fmt.Fprintf(&out, "\n## %s\n\n| constant | value | what it bounds |\n|---|---|---|\n", dir)
		}
		for _, l := range limits {
			if l.text == "" {
				t.Errorf("%s of %s has no comment", l.name, dir)
			}
			fmt.Fprintf(&out, "| `%s` | %s | %s |\n", l.name, l.value, escaped(l.text))
		}
	})
	compare(t, "contributors/limits.md", out.String())
}

func TestValuesOfLimits(t *testing.T) {
	for text, want := range map[string]string{
		"2 * time.Minute": "2m", "time.Second / 4": "250ms", "90 * time.Second": "1m30s", "1 << 20": "1048576", "0.05": "0.05", "base + 7/2": "13",
		"(base) * time.Hour": "10h", `"text"`: "", "time.Now": "", "3 * other.Second": "", "-1 * other": "",
	} {
		e, err := parser.ParseExpr(text)
		if err != nil {
			t.Fatal(err)
		}
		have := ""
		if v, isTime := (constants{"base": &ast.BasicLit{Kind: token.INT, Value: "10"}}).value(e); v != nil {
			have = shown(v, isTime)
		}
		if have != want {
			t.Errorf("%s is shown as %q, want %q", text, have, want)
		}
	}
}
