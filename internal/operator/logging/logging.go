// Copyright The Coxswain Authors.
// SPDX-License-Identifier: Apache-2.0

// Package logging is the one place that decides how the programs write their logs.
package logging

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
)

// Bind declares the flags of the level and the format, under our names and the predecessors'.
func Bind(fs *flag.FlagSet, level, format *string) {
	for _, name := range []string{"log-level", "zap-log-level"} {
		fs.StringVar(level, name, "info", "`level`: debug, info, warn or error")
	}
	for _, name := range []string{"log-format", "zap-encoder"} {
		fs.StringVar(format, name, "json", "`format`: json or plain (console)")
	}
}

// Ignored returns the predecessors' flags about logs that have no meaning here, each with the reason.
func Ignored() map[string]string {
	return map[string]string{
		"zap-devel":            "use --log-format=plain and --log-level=debug",
		"zap-stacktrace-level": "logs carry no stack traces",
		"zap-time-encoding":    "times are RFC 3339",
	}
}

// Handler writes records of at least a level (debug, info, warn, error) to w, as json or plain text; console is another
// name for plain. The errors name the flags that the values come from.
func Handler(w io.Writer, level, format string) (slog.Handler, error) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level is %q: use debug, info, warn or error", level)
	}
	o := &slog.HandlerOptions{Level: least}
	switch format {
	case "json":
		return slog.NewJSONHandler(w, o), nil
	case "plain", "console":
		return slog.NewTextHandler(w, o), nil
	default:
		return nil, fmt.Errorf("--log-format is %q: use json or plain", format)
	}
}
