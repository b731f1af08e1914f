package secrets

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// keyBytes are lines as those of a private key.
func keyBytes(n int) []string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	r := rand.New(rand.NewPCG(1, 2))
	lines := make([]string, n)
	for i := range lines {
		length := 64
		if i == n-1 {
			length = 21
		}
		var b strings.Builder
		for range length {
			b.WriteByte(digits[r.IntN(len(digits))])
		}
		lines[i] = b.String()
	}
	return lines
}

// pem is a private key. Its marks are put together, so that this file holds none.
func pem(kind string, lines []string) string {
	mark := kind + "PRIVATE KEY-----\n"
	return "-----BEGIN " + mark + strings.Join(lines, "\n") + "\n-----END " + mark
}

// leftOf counts the lines of a key that a text still has.
func leftOf(lines []string, text string) (n int) {
	for _, l := range lines {
		if strings.Contains(text, l) {
			n++
		}
	}
	return n
}

func TestPrivateKeys(t *testing.T) {
	const mark = "KEY-----\n"
	lines := keyBytes(25)
	key := pem("RSA ", lines)
	asJSON, err := json.Marshal(map[string]string{"private_key": key, "type": "service_account"})
	if err != nil {
		t.Fatal(err)
	}
	twice, err := json.Marshal(string(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"plain":        "before\n" + key + "after",
		"openssh":      "before\n" + pem("OPENSSH ", lines) + "after",
		"encrypted":    "before\n" + strings.Replace(key, mark, mark+"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\n", 1) + "after",
		"block":        "before\n" + strings.ReplaceAll(pem("PGP ", lines), "KEY-----", "KEY BLOCK-----") + "after",
		"crlf":         "before\r\n" + strings.ReplaceAll(key, "\n", "\r\n") + "after",
		"indented":     "before\n  key: |\n    " + strings.ReplaceAll(strings.TrimSpace(key), "\n", "\n    ") + "\nafter",
		"quoted":       "before\n> " + strings.ReplaceAll(strings.TrimSpace(key), "\n", "\n> ") + "\nafter",
		"json":         "before " + string(asJSON) + " after",
		"json in json": "before " + string(twice) + " after",
		"cut off":      "before\n" + key[:len(key)/2],
		"cut, more":    "before\n" + strings.Join(strings.Split(key, "\n")[:10], "\n") + "\nand so on, after",
		"cut in front": strings.Join(strings.Split(key, "\n")[5:], "\n") + "before\nafter",
		"two":          "before\n" + key + "between\n" + key + "after",
		"lower case": "before\n" + strings.NewReplacer("BEGIN RSA PRIVATE KEY", "begin rsa private key",
			"END RSA PRIVATE KEY", "end rsa private key").Replace(key) + "after",
	} {
		clean := Redact(text)
		if n := leftOf(lines, clean); n > 0 {
			t.Errorf("%s: %d of %d lines are left: %s", name, n, len(lines), clean)
		}
		if !strings.Contains(clean, "[redacted:private-key]") || !strings.Contains(clean, "before") ||
			strings.Contains(text, "after") && !strings.Contains(clean, "after") {
			t.Errorf("%s became %q", name, clean)
		}
	}
}

// TestStream: however a text is cut into lines, nothing of a key or of private text comes through, and all else does.
func TestStream(t *testing.T) {
	lines := keyBytes(25)
	hidden := strings.Join(keyBytes(3)[:2], "\n")
	text := "one\n" + pem("RSA ", lines) + "two <private>" + hidden + "</PRIVATE> three\nfour\n" +
		pem("", lines) + "five\n"
	rows := strings.SplitAfter(text, "\n")
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		s := Stream{Mark: "[private]"}
		var out strings.Builder
		for i := 0; i < len(rows); {
			n := min(1+r.IntN(6), len(rows)-i)
			out.Write(RedactBytes(s.Hide([]byte(strings.Join(rows[i:i+n], "")))))
			i += n
		}
		got := out.String()
		if leftOf(lines, got) > 0 || strings.Contains(got, strings.Split(hidden, "\n")[1]) {
			t.Fatalf("left: %s", got)
		}
		if n := strings.Count(got, markStart+ruleKey+markEnd); n != 2 {
			t.Fatalf("%d keys are named, want 2: %s", n, got)
		}
		for _, word := range []string{"one\n", "two [private] three\n", "four\n", "five\n"} {
			if !strings.Contains(got, word) {
				t.Fatalf("%q is lost: %s", word, got)
			}
		}
	}
}

func TestStreamLeavesOtherText(t *testing.T) {
	var s Stream
	for i, part := range []string{
		"-----BEGIN CERTIFICATE-----\n", "MIIB\n", "-----END CERTIFICATE-----\n", "text </private> text\n",
	} {
		if got := string(s.Hide([]byte(part))); got != part {
			t.Errorf("part %d became %q", i, got)
		}
	}
	s = Stream{}
	var out []string
	for i := range 4 {
		prose := fmt.Appendf(nil, "they begin with -----BEGIN PRIVATE %s-----, mostly (%d)\n", "KEY", i)
		out = append(out, string(s.Hide(prose)))
	}
	if got := strings.Join(out, ""); strings.Count(got, "mostly") != 4 {
		t.Errorf("prose is taken for a key: %q", got)
	}
}
