package tools

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// This file knows ways in which a change has a test expect less without a word about its assertions: fewer cases in its tables, and more time.

// row finds a line that is one element of a table of cases.
var row = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:\{.*[^\s{].*\}|\(.*,.*\)|\[.*,.*\]|pytest\.param\(.*\)|\w+\(["'].*\)|"(?:[^"\\]|\\.)*": *\{.*\}),$`)
})

// rows counts the lines of a text that are elements of tables.
func rows(text []byte) (n int) {
	for line := range strings.Lines(string(text)) {
		if row().MatchString(strings.TrimSpace(line)) {
			n++
		}
	}
	return n
}

// patience finds a line that says how long something may take.
var patience = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)time_?out|deadline|eventually|wait_?for`) })

// amount finds a number in a line.
var amount = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b\d[\d_]*(?:\.\d+)?`) })

// longer counts the lines of a text that allow more time than before, and are the same but for their numbers.
func longer(before, after []byte) (n int) {
	of := func(text []byte) (out []string) {
		for line := range strings.Lines(string(text)) {
			if said := strings.Join(strings.Fields(line), " "); patience().MatchString(said) {
				out = append(out, said)
			}
		}
		return out
	}
	was, is := of(before), of(after)
	sums := map[string][]float64{}
	for _, said := range minus(was, is) {
		like := amount().ReplaceAllString(said, "?")
		sums[like] = append(sums[like], sum(said))
	}
	for _, said := range minus(is, was) {
		like := amount().ReplaceAllString(said, "?")
		if old := sums[like]; len(old) > 0 {
			if sum(said) > old[0] {
				n++
			}
			sums[like] = old[1:]
		}
	}
	return n
}

// sum adds up the numbers of a line.
func sum(line string) (total float64) {
	for _, m := range amount().FindAllString(line, -1) {
		v, _ := strconv.ParseFloat(strings.ReplaceAll(m, "_", ""), 64)
		total += v
	}
	return total
}
