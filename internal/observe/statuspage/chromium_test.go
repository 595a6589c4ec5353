// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

package statuspage

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/coxswain-hpc/coxswain/internal/slurm/node"
)

var (
	chromium    = flag.Bool("statuspage.chromium", false, "look at the pages with Chromium, which has to be installed")
	screenshots = flag.String("statuspage.screenshots", "", "`directory` for the pictures that the documentation has; default: they are not kept")
)

const (
	// maxFirstPaint is how long Chromium may take until it shows something.
	maxFirstPaint = time.Second
	// maxDelay is how old a change may be when the page shows it.
	maxDelay = 2 * time.Second
	// maxPictured is the number of nodes up to which the documentation has a picture.
	maxPictured = 1000
	// maxPictureBytes is how large the pictures in the documentation may be.
	maxPictureBytes = 150_000
)

// needsChromium skips a test whole unless it is asked for. Then Chromium has to be there.
func needsChromium(t *testing.T) {
	t.Helper()
	if !*chromium {
		t.Skip("needs -statuspage.chromium, and Chromium")
	}
}

// browser starts Chromium until the test ends. It prefers light or dark pages.
func browser(t *testing.T, scheme string) context.Context {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.WindowSize(1280, 900))
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, stop = chromedp.NewContext(ctx)
	t.Cleanup(stop)
	params := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, params); err != nil {
		t.Fatal(err)
	}
	return ctx
}

func run(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) { //nolint:revive // the test comes first everywhere
	t.Helper()
	if err := chromedp.Do(ctx, steps...); err != nil {
		t.Fatal(err)
	}
}

// value returns what a JavaScript expression yields in the page.
func value[T any](t *testing.T, ctx context.Context, expression string) T { //nolint:revive // the test comes first everywhere
	t.Helper()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// await waits until a JavaScript expression is true in the page.
func await(expression string) chromedp.Action[chromedp.Void] {
	return chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInterval(20*time.Millisecond))
}

// following is true if the page receives updates.
const following = "document.getElementById('live').textContent.includes('follows')"

// picture takes a picture of the page.
func picture(t *testing.T, ctx context.Context) []byte { //nolint:revive // the test comes first everywhere
	t.Helper()
	out, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// dark reports whether a picture of a page has a dark background.
func dark(t *testing.T, picture []byte) bool {
	t.Helper()
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	red, _, _, _ := decoded.At(decoded.Bounds().Max.X-20, decoded.Bounds().Min.Y+200).RGBA()
	return red < 0x8000
}

func TestChromiumShowsAPageWithinASecond(t *testing.T) {
	needsChromium(t)
	for _, nodes := range []int{20, 1000, 10000} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprintf("%d nodes, %s", nodes, scheme), func(t *testing.T) {
				ctx := browser(t, scheme)
				m := newMemory(example(nodes))
				m.jobs = exampleRecords()
				m.edit(func(f *Facts) { f.Partitions = map[string]int{"cpu": nodes - nodes/4, "gpu": nodes / 4} })
				_, url := serve(t, m, nil)
				run(t, ctx, chromedp.Navigate(url+"/ui/slurm/demo"), chromedp.WaitVisible("#legend .legend"))
				run(t, ctx, await("performance.getEntriesByName('first-contentful-paint').length > 0"))
				paint := value[float64](t, ctx, "performance.getEntriesByName('first-contentful-paint')[0].startTime")
				t.Logf("first contentful paint after %.0f ms", paint)
				if took := time.Duration(paint * float64(time.Millisecond)); took > maxFirstPaint {
					t.Errorf("it was shown after %s", took)
				}
				if cells := value[int](t, ctx, "document.querySelectorAll('.grid i').length"); cells != nodes {
					t.Errorf("%d nodes are there", cells)
				}
				run(t, ctx, await(following), await("document.querySelectorAll('#jobs tbody tr').length > 0"))
				taken := picture(t, ctx)
				if dark(t, taken) != (scheme == "dark") {
					t.Error("the background is not as the browser prefers it")
				}
				if nodes > maxPictured {
					return
				}
				if len(taken) > maxPictureBytes {
					t.Errorf("the picture has %d bytes", len(taken))
				}
				if *screenshots == "" {
					return
				}
				if err := os.WriteFile(filepath.Join(*screenshots, fmt.Sprintf("status-page-%d-%s.png", nodes, scheme)), taken, 0o600); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

func TestChromiumShowsAChangeWithinTwoSeconds(t *testing.T) {
	needsChromium(t)
	for _, nodes := range []int{20, 10000} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			ctx := browser(t, "light")
			m := newMemory(example(nodes))
			s, url := serve(t, m, nil)
			run(t, ctx, chromedp.Navigate(url+"/ui/slurm/demo"), await(following))
			for _, change := range []struct {
				words []string
				class string
			}{{[]string{"ALLOCATED"}, "s2"}, {[]string{"IDLE", "DRAIN"}, "s4"}, {[]string{"IDLE"}, "s0"}} {
				began := time.Now()
				m.edit(func(f *Facts) { f.Nodes[0].State = node.Parse(change.words) })
				s.Wake()
				run(t, ctx, await(fmt.Sprintf("document.querySelector('.grid i').className === %q", change.class)))
				took := time.Since(began)
				t.Logf("%v is shown after %s", change.words, took.Round(time.Millisecond))
				if took > maxDelay {
					t.Errorf("%v is shown after %s", change.words, took)
				}
			}
		})
	}
}

func TestChromiumSelectsNodesByKeyboard(t *testing.T) {
	needsChromium(t)
	ctx := browser(t, "light")
	m := newMemory(example(1000))
	s, url := serve(t, m, nil)
	run(t, ctx, chromedp.Navigate(url+"/ui/slurm/demo"), await(following))
	const selected = "document.activeElement.title.split('\\n')[0]"
	expect := func(after, want string) {
		t.Helper()
		if got := value[string](t, ctx, selected); got != want {
			t.Errorf("after %s node %q is selected, want %q", after, got, want)
		}
	}
	const caches = 4 // of the navigation
	for range caches + 1 {
		run(t, ctx, chromedp.KeyEvent(kb.Tab))
	}
	expect("Tab", "cpu-0")
	run(t, ctx, chromedp.KeyEvent(kb.ArrowRight))
	expect("the right arrow", "cpu-1")
	run(t, ctx, chromedp.KeyEvent(kb.ArrowDown))
	columns := value[int](t, ctx, "[...document.querySelectorAll('.grid i')].findIndex((n, _, all) => n.offsetTop !== all[0].offsetTop)")
	expect("the down arrow", fmt.Sprintf("cpu-%d", columns+1))
	run(t, ctx, chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.ArrowLeft))
	expect("up and left", "cpu-0")
	run(t, ctx, chromedp.KeyEvent(kb.End))
	expect("End", "cpu-749")
	run(t, ctx, chromedp.KeyEvent(kb.Tab))
	expect("Tab", "gpu-0")
	if shown := value[string](t, ctx, "document.getElementById('details').textContent"); shown != "gpu-0\nidle (IDLE+DYNAMIC_NORM)" {
		t.Errorf("the details are %q", shown)
	}
	m.edit(func(f *Facts) { f.Nodes[750].State = node.Parse([]string{"DOWN"}) })
	s.Wake()
	run(t, ctx, await("document.getElementById('details').textContent === 'gpu-0\\ndown (DOWN)'"))
	expect("an update", "gpu-0")
}
