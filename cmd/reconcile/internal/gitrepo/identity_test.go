package gitrepo

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestIdentities(t *testing.T) {
	for name, c := range map[string]struct {
		config, author string
		env            map[string]string
		want           string
	}{
		"nobody":    {want: "reconcile <reconcile@localhost>|reconcile <reconcile@localhost>"},
		"user":      {config: "[user]\nname=A\nemail=a@x\n", want: "A <a@x>|A <a@x>"},
		"name only": {config: "[user]\nname=A\n", want: "A <reconcile@localhost>|A <reconcile@localhost>"},
		"author and committer": {config: "[user]\nname=A\nemail=a@x\n[author]\nname=B\n[committer]\nemail=c@x\n",
			want: "B <a@x>|A <c@x>"},
		"settings": {config: "[user]\nname=A\nemail=a@x\n", author: "Bot Two <bot@x>", want: "Bot Two <bot@x>|A <a@x>"},
		"bot": {author: "github-actions[bot] <41898282+github-actions[bot]@users.noreply.github.com>",
			want: strings.Repeat("|github-actions[bot] <41898282+github-actions[bot]@users.noreply.github.com>", 2)[1:]},
		"settings only": {author: "Bot <bot@x>", want: "Bot <bot@x>|Bot <bot@x>"},
		"environment": {config: "[user]\nname=A\nemail=a@x\n", env: map[string]string{"GIT_AUTHOR_NAME": "E", "GIT_COMMITTER_EMAIL": "e@x"},
			want: "E <a@x>|A <e@x>"},
		"crud":    {config: "[user]\nname=\" A <b>, \"\nemail=\"<a@x>\"\n", want: "A b|A b"},
		"include": {config: "[include]\npath = more\n", want: "I <i@x>|I <i@x>"},
		"config in the environment": {env: map[string]string{"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "user.name", "GIT_CONFIG_VALUE_0": "V"},
			want: "V <reconcile@localhost>|V <reconcile@localhost>"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			global := f.path(".git/global")
			f.write(".git/global", c.config)
			f.write(".git/more", "[user]\nname=I\nemail=i@x\n")
			f.git("config", "--unset", "user.name")
			f.git("config", "--unset", "user.email")
			t.Setenv("GIT_CONFIG_GLOBAL", global)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			git, _ := exec.LookPath("git")
			cfg, err := loadConfig(layout{worktree: f.dir, gitDir: f.path(".git"), common: f.path(".git")}, git)
			if err != nil {
				t.Fatal(err)
			}
			a, m, err := identities(t.Context(), cfg, c.author, noon)
			if err != nil {
				t.Fatal(err)
			}
			got := a.user() + "|" + m.user()
			if name == "crud" {
				got = a.name + "|" + m.name
			}
			f.equal("identities", got, c.want)
		})
	}
}

func TestBadAuthor(t *testing.T) {
	f := newFixture(t)
	f.write(checks, done)
	for _, author := range []string{"nobody", "a@b", "<a@b>", "A <", "A <>", "A <a@b> c"} {
		_, err := f.open().Commit(t.Context(), Commit{Paths: []string{checks}, Author: author, When: noon})
		if err == nil || !strings.Contains(err.Error(), "Name <mail>") {
			t.Errorf("author %q: %v", author, err)
		}
	}
	t.Setenv("GIT_AUTHOR_DATE", "yesterday")
	if _, err := f.open().Commit(t.Context(), Commit{Paths: []string{checks}, When: noon}); err == nil ||
		!strings.Contains(err.Error(), "GIT_AUTHOR_DATE") {
		t.Errorf("a date that nobody can read: %v", err)
	}
	f.unlittered()
}

func TestParseDate(t *testing.T) {
	for in, want := range map[string]string{
		"@1700000000 +0130":               "2023-11-14T23:43:20+01:30",
		"1700000000 -0800":                "2023-11-14T14:13:20-08:00",
		"@12":                             "1970-01-01T00:00:12Z",
		"2023-11-14T22:13:20Z":            "2023-11-14T22:13:20Z",
		"2023-11-14 22:13:20 +0100":       "2023-11-14T22:13:20+01:00",
		"Tue, 14 Nov 2023 22:13:20 +0000": "2023-11-14T22:13:20Z",
	} {
		got, err := parseDate(in)
		if err != nil {
			t.Errorf("%q: %v", in, err)
			continue
		}
		if w, _ := time.Parse(time.RFC3339, want); !got.Equal(w) || got.Format("-0700") != w.Format("-0700") {
			t.Errorf("%q: got %v, want %v", in, got, w)
		}
	}
	for _, in := range []string{"", "now", "20231114", "@x", "@1 bad"} {
		if got, err := parseDate(in); err == nil {
			t.Errorf("%q: %v; want an error", in, got)
		}
	}
}

func TestSSHSignature(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	key := f.path(".git/key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	public, err := os.ReadFile(key + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	f.write(".git/allowed", "ada@example.org "+string(public))
	f.git("config", "gpg.format", "ssh")
	f.git("config", "gpg.ssh.allowedSignersFile", f.path(".git/allowed"))
	f.git("config", "commit.gpgSign", "true")
	f.git("config", "user.signingKey", key)
	f.write(checks, done)
	f.commit(f.open(), checks)
	if out := f.git("verify-commit", "HEAD"); !strings.Contains(out, "Good \"git\" signature for ada@example.org") {
		t.Errorf("signature: %s", out)
	}
	f.clean()
	f.sound()

	f.git("config", "user.signingKey", f.path(".git/absent"))
	f.write(checks, "again\n")
	head := f.git("rev-parse", "HEAD")
	_, err = f.open().Commit(t.Context(), Commit{Paths: []string{checks}, Message: "m", When: noon})
	if err == nil || !strings.Contains(err.Error(), "git.sign: never") {
		t.Errorf("a key that does not exist: %v; want what to do", err)
	}
	f.equal("HEAD", f.git("rev-parse", "HEAD"), head)
	if _, err := f.open().Commit(t.Context(), Commit{Paths: []string{checks}, Message: "m", When: noon, Sign: "never"}); err != nil {
		t.Error(err)
	}
	f.sound()
}

// TestPGPSignature uses a program of our own in gpg's place: what counts is how it is called and what becomes of the
// answer.
func TestPGPSignature(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	script := "#!/bin/sh\ncat > '" + f.path(".git/payload") + "'\necho \"$@\" > '" + f.path(".git/args") + "'\n" +
		"echo '[GNUPG:] SIG_CREATED D 1' >&2\nprintf -- '-----BEGIN PGP SIGNATURE-----\\n\\nabc\\n-----END PGP SIGNATURE-----\\n'\n"
	f.write(".git/gpg", script)
	f.chmod(".git/gpg", 0o755)
	f.git("config", "gpg.program", f.path(".git/gpg"))
	f.write(checks, done)
	if _, err := f.open().Commit(t.Context(), Commit{Paths: []string{checks}, Message: "m", When: noon, Sign: "always"}); err != nil {
		t.Fatal(err)
	}
	args, _ := os.ReadFile(f.path(".git/args"))
	f.equal("arguments", string(args), "--status-fd=2 -bsau Ada User <ada@example.org>\n")
	raw := f.git("cat-file", "commit", "HEAD")
	signature := "gpgsig -----BEGIN PGP SIGNATURE-----\n \n abc\n -----END PGP SIGNATURE-----\n"
	if !strings.Contains(raw, signature) {
		t.Errorf("no signature in\n%s", raw)
	}
	payload, _ := os.ReadFile(f.path(".git/payload"))
	f.equal("payload", string(payload), strings.Replace(raw, signature, "", 1)+"\n")
	f.sound()

	f.write(".git/gpg-quiet", "#!/bin/sh\ncat >/dev/null\n")
	f.chmod(".git/gpg-quiet", 0o755)
	f.git("config", "gpg.program", f.path(".git/gpg-quiet"))
	f.write(checks, "again\n")
	if _, err := f.open().Commit(t.Context(), Commit{Paths: []string{checks}, Message: "m", When: noon, Sign: "always"}); err == nil {
		t.Error("a program that signs nothing passed for a signature")
	}
}
