//go:build unix

package runner

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

// A command may print what it likes: what is kept of it, and the memory that it takes, is bounded.
func TestOutputIsBounded(t *testing.T) {
	for name, script := range map[string]string{
		"many lines":          "yes 'a line of output' | head -c " + muchOutput(),
		"one line":            "head -c " + muchOutput() + " /dev/zero | tr '\\0' x",
		"5 MB of garbage":     "head -c 5000000 /dev/urandom",
		"5 MB of control":     "yes \"$(printf '\\033[31m\\007\\r')\" | head -c 5000000",
		"without end":         "yes",
		"without any newline": "while :; do printf 0123456789; done",
	} {
		t.Run(name, func(t *testing.T) {
			g := newRig(t, Options{Runs: schemas.RunSettings{OutputLimit: 100_000, TailLimit: 1000}})
			e := sh(script)
			endless := strings.HasPrefix(name, "without")
			if endless {
				e.Command().Timeout = 200_000_000
			}
			before := allocated()
			run := g.do(e)
			if used := allocated() - before; used > 8<<20 {
				t.Errorf("%d bytes of memory were taken", used)
			}
			if endless == (run.Outcome == schemas.OutcomeSucceeded) {
				t.Errorf("%s %q", run.Outcome, run.Message)
			}
			checkTail(t, run.Output, 1000)
			if endless && run.Log == "" {
				return // it was ended before it printed anything
			}
			log, err := os.ReadFile(filepath.Join(g.dir, run.Log))
			said := bytes.Contains(log, []byte("more bytes of output were dropped"))
			if err != nil || len(log) > 100_200 || !endless && (len(log) < 100_000 || !said) {
				t.Errorf("log of %d bytes, %v: …%.100q", len(log), err, log[max(0, len(log)-100):])
			}
		})
	}
}

// muchOutput is a number of bytes, more than a run may take of memory.
func muchOutput() string { return fmt.Sprint(mutants.Size(12, 30, 100), "000000") }

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func checkTail(t *testing.T, tail string, limit int) {
	t.Helper()
	if len(tail) > limit || !utf8.ValidString(tail) {
		t.Errorf("tail of %d bytes, valid %v", len(tail), utf8.ValidString(tail))
	}
	for _, r := range tail {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			t.Errorf("tail has %q", r)
			return
		}
	}
}

func TestTailIsTheEnd(t *testing.T) {
	g := newRig(t, Options{Runs: schemas.RunSettings{TailLimit: 20}})
	if run := g.do(sh("seq 1000")); run.Output != "997\n998\n999\n1000\n" && run.Output != "996\n997\n998\n999\n1000\n" {
		t.Errorf("got %q", run.Output)
	}
}

func TestLogThatCannotBeWritten(t *testing.T) {
	g := newRig(t, Options{})
	g.write(".reconcile/logs", "in the way")
	e := sh("echo said")
	g.Submit(e)
	r := g.await(e.Key)
	if run := r.Run; run.Outcome != schemas.OutcomeSucceeded || run.Output != "said\n" || run.Log == "" {
		t.Errorf("%s, log %q, output %q; a lost log changes no record", run.Outcome, run.Log, run.Output)
	}
	if !strings.Contains(r.Why, "is not complete") {
		t.Errorf("warned of %q", r.Why)
	}
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                     "plain\ttext\n",
		"a\r\nb\rc":                         "a\nb\nc",
		"\x1b[1;31mred\x1b[0m":              "red",
		"\x1b]0;title\x07x\x1b]8;;u\x1b\\y": "xy",
		"\x1b]unterminated\nnext":           "\nnext",
		"\x1b[12":                           "",
		"\x1bM\x00\x08\x7f":                 "",
		"\xff\xfeé":                         "\ufffd\ufffdé",
		"a\u202eb\u2066c\ufeff":             "abc",
		"\u009b31m":                         "31m",
	} {
		if got := printable([]byte(in)); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func FuzzTail(f *testing.F) {
	f.Add([]byte("\x1b[31mx\r\n\xffé\x1b"), 5)
	f.Fuzz(func(t *testing.T, b []byte, limit int) {
		limit = max(0, limit%100)
		checkTail(t, ending(printable(b), limit), limit)
	})
}

const canary = "s3cr3t/canary+4711&\"x\""

// A secret of our own environment is in no file and no record, however a command prints it.
func TestSecretsAreNowhere(t *testing.T) {
	g := newRig(t, Options{Runs: schemas.RunSettings{OutputCache: new(int)}, Environ: append(surroundings(),
		"GITHUB_TOKEN="+canary, "DEPLOY_KEY=-----BEGIN\nline-of-a-key\n-----END")})
	asJSON, _ := json.Marshal(canary)
	e := sh(`cat; cat >&2; echo "{\"$C\": [$J]}" > r.json; head -c 70000 /dev/zero | tr '\0' x; printf %s "$C"; exit 0`)
	e.Command().Env = []string{"C=canary-4711", "J=" + string(asJSON)}
	e.Command().Stdin = canary + "\n  line-of-a-key\n" + string(asJSON) + "\n" + strings.Repeat("y", 65500) + canary
	e.Command().OutputJSON = "r.json"
	run := g.do(e)
	if run.Outcome != schemas.OutcomeSucceeded || string(run.Result) != `{"***":["***"]}` {
		t.Fatalf("%s %q, result %s", run.Outcome, run.Message, run.Result)
	}
	os.Remove(filepath.Join(g.dir, "r.json")) // that the command wrote itself
	failed := effect("failed", canary)
	texts := map[string]string{"record": run.Output + string(run.Result) + run.Message, "message": g.do(failed).Message}
	text := sh("echo canary-4711")
	text.Command().Output = "text"
	texts["text"] = string(g.do(text).Result)
	filepath.WalkDir(g.dir, func(path string, d os.DirEntry, err error) error {
		if b, readErr := os.ReadFile(path); readErr == nil {
			texts[path] = string(b)
		}
		return err
	})
	for where, text := range texts {
		for _, secret := range []string{canary, string(asJSON[1 : len(asJSON)-1]), "canary-4711", "line-of-a-key"} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has %q", where, secret)
			}
		}
	}
	if len(texts) < 4 {
		t.Errorf("looked only at %d texts", len(texts))
	}
}

func TestCutTextHasNoHalfSecret(t *testing.T) {
	g := newRig(t, Options{Environ: append(surroundings(), "MY_SECRET=abcdefghijklmnop"), Runs: schemas.RunSettings{ResultLimit: 20}})
	e := sh("printf 0123456789abcdefghijklmnop")
	e.Command().Output = "text"
	if run := g.do(e); string(run.Result) != `"0123456789\n[cut]"` {
		t.Errorf("got %s", run.Result)
	}
}

func TestRedactHook(t *testing.T) {
	g := newRig(t, Options{Redact: func(b []byte) []byte {
		if len(b) > 0 && b[len(b)-1] != '\n' && !bytes.Equal(b, []byte("tail")) {
			t.Errorf("not whole lines: %q", b)
		}
		return bytes.ReplaceAll(b, []byte("4111-1111"), []byte("####"))
	}})
	if run := g.do(sh("printf 'card 41'; printf '11-1111 ok\\ntail'")); run.Output != "card #### ok\ntail" {
		t.Errorf("got %q", run.Output)
	}
}

func TestSecretNames(t *testing.T) {
	for name, want := range map[string]bool{
		"GITHUB_TOKEN": true, "token": true, "AWS_SECRET_ACCESS_KEY": true, "PGPASSWORD": true, "KEY": true, "SSH_KEY": true,
		"OPENAI_API_KEY": true, "NPM_AUTH": true, "DB_DSN": true, "MYSQL_PWD": true, "GITHUB_PAT": true,
		"PATH": false, "HOME": false, "KEYBOARD": false, "PWD": false, "OLDPWD": false, "MONKEY": false, "PATTERN": false,
	} {
		if got := secretName(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	s := FindSecrets([]string{"SHORT_KEY=abc", "HOME=/home/x", "KEY_DIR=/home/x", "TOKEN="}, "/tree")
	if len(s.values()) > 0 {
		t.Errorf("secrets %q", s.values())
	}
}

// TestSecretsInEncodings: a secret is found in base64, wherever it begins there, in hexadecimal, in UTF-16 and across the ends of lines.
func TestSecretsInEncodings(t *testing.T) {
	const value = "pässword+with/5?es"
	r := &Runner{secrets: new(Secrets)}
	r.secrets.hide(value)
	printed := []string{hex.EncodeToString([]byte(value)), strings.ToUpper(hex.EncodeToString([]byte(value)))}
	for _, before := range []string{"", "a", "ab", "abc"} {
		for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
			printed = append(printed, e.EncodeToString([]byte(before+value+"!")))
		}
	}
	for _, text := range printed {
		if !r.secrets.In([]byte(text)) || !strings.Contains(r.clean(text), redacted) {
			t.Errorf("%s: %s", text, r.clean(text))
		}
	}
	for _, text := range []string{"p\x00\xe4\x00", "pass word", "pässword+\n\nwith /5?es"} {
		if r.secrets.In([]byte(text)) {
			t.Errorf("%q counts as secret", text)
		}
	}
	for _, text := range []string{"  pässword\r\n\t+with/\n5?es", "pässword\x1b[31m+with/5?es", "päss\x1b[0mword\n+with/5?es", `pässword+with\/5?es`} {
		if !r.secrets.In([]byte(text)) {
			t.Errorf("%q counts as no secret", text)
		}
	}
	r.secrets.reveal(value)
	r.secrets.hide("ascii-value")
	if wide := "\x00a\x00s\x00c\x00i\x00i\x00-\x00v\x00a\x00l\x00u\x00e"; !r.secrets.In([]byte(wide)) {
		t.Error("UTF-16 counts as no secret")
	}
	r.secrets.reveal("ascii-value")
	if left := r.secrets.values(); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

// TestBrokenSecrets: what of an output becomes printable again, or whole when lines are joined, is no secret. Nor is it if its parts come
// one after the other.
func TestBrokenSecrets(t *testing.T) {
	const value = "Zq7-kP2/vR9+xW4tY6uB8nM3cD5"
	r := &Runner{secrets: new(Secrets)}
	r.secrets.hide(value)
	code := base64.StdEncoding.EncodeToString([]byte(value))
	for name, text := range map[string]string{
		"UTF-16":          strings.Join(strings.Split(value, ""), "\x00") + "\x00",
		"colors":          value[:9] + "\x1b[1;31m" + value[9:14] + "\x1b[0m" + value[14:],
		"a bell":          value[:9] + "\a" + value[9:],
		"directions":      value[:9] + "\u202e" + value[9:],
		"lines":           value[:9] + "\n" + value[9:],
		"many lines":      strings.Join(strings.Split(value, ""), "\n"),
		"indented":        value[:9] + "\r\n\t  " + value[9:],
		"base64 in lines": code[:12] + "\n" + code[12:],
		"colored lines":   "\x1b[31m" + value[:9] + "\x1b[0m\n\x1b[31m" + value[9:] + "\x1b[0m",
		"twice":           value[:9] + "\n" + value[9:] + "\n" + value[:12] + "\n" + value[12:],
		"JSON":            strings.ReplaceAll(value, "/", `\/`),
	} {
		text = "\x1b[1mbefore\x1b[0m <" + text + "> after\n"
		shown := func(b string) bool {
			return strings.Contains(string(joinLines([]byte(printable([]byte(b))))), value) || strings.Contains(string(joinLines([]byte(b))), code)
		}
		if got := r.clean(text); shown(got) || !strings.HasPrefix(printable([]byte(got)), "before <"+redacted) || !strings.HasSuffix(got, redacted+"> after\n") {
			t.Errorf("%s: %q became %q", name, text, got)
		}
		k := &sink{tailLimit: 1 << 10, secrets: r.secrets}
		for line := range strings.Lines(text) {
			k.keepTail(r.cleanLines([]byte(line)))
		}
		if got := k.text(); shown(got) || !strings.HasPrefix(got, "before <") {
			t.Errorf("%s: the end of %q is %q", name, text, got)
		}
		k = &sink{tailLimit: 1 << 10, secrets: r.secrets}
		k.keepTail([]byte(text)) // as if a part of it was too long to be seen at once
		if got := k.text(); shown(got) {
			t.Errorf("%s: the end is %q", name, got)
		}
	}
	for _, text := range []string{"\x1b[31mred\x1b[0m\n", "\x00\xff\x00", "a\n\n b\n", value[:15] + "\n" + value[16:]} {
		if got := r.clean(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestPrivateText(t *testing.T) {
	g := newRig(t, Options{})
	run := g.do(sh("echo 'a <private>b</private> c'; echo 'd <private>e'; echo f; echo 'g</private> h';" +
		"echo '<private>never closed'; echo i"))
	if want := "a [private] c\nd [private] h\n[private]"; run.Output != want {
		t.Errorf("got %q, want %q", run.Output, want)
	}
}

// However a text is cut into pieces on its way, nothing secret of it comes through.
func FuzzStream(f *testing.F) {
	f.Add([]byte("before "+canary+" after\n"), uint16(3), true)
	f.Add(bytes.Repeat([]byte("x"), 70_000), uint16(999), false)
	r := &Runner{secrets: FindSecrets([]string{"TOKEN=" + canary}, "/tree")}
	const longest = 4 << 10
	f.Fuzz(func(t *testing.T, noise []byte, step uint16, newline bool) {
		text := append(bytes.Clone(noise), canary...)
		text = append(text, noise...)
		if newline {
			text = append(text, '\n')
		}
		text = append(text, "<private>"+"hidden4711"+"</private>"...)
		text = bytes.Repeat(text, 1+2*longest/len(text))
		k := &sink{tailLimit: len(text)}
		s := &stream{sink: k, clean: r.newFilter(), longest: longest}
		for rest := text; len(rest) > 0; {
			n := min(len(rest), 1+int(step), readSize)
			s.feed(bytes.Clone(rest[:n]))
			rest = rest[n:]
		}
		s.emit(s.carry)
		if bytes.Contains(k.tail, []byte(canary)) {
			t.Error("the secret came through")
		}
		if !bytes.Contains(noise, []byte("private>")) && bytes.Contains(k.tail, []byte("hidden4711")) {
			t.Error("private text came through")
		}
	})
}

func BenchmarkOutput(b *testing.B) {
	r := &Runner{secrets: FindSecrets([]string{"TOKEN=" + canary, "OTHER_TOKEN=0123456789"}, "/tree")}
	chunk := bytes.Repeat([]byte("a line of output, as programs print them\n"), readSize/41)
	s := &stream{sink: &sink{tailLimit: 4096}, clean: r.newFilter(), longest: lineLimit}
	b.SetBytes(int64(len(chunk)))
	for b.Loop() {
		s.feed(chunk)
	}
}
