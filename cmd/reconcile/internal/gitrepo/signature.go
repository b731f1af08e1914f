package gitrepo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// identity is an author or committer, with the time.
type identity struct {
	name, email string
	when        time.Time
}

// defaultIdentity is the committer if nothing else is configured.
var defaultIdentity = identity{name: "reconcile", email: "reconcile@localhost"}

// String is the form of a commit's author line: "Name <mail> 1700000000 +0100".
func (i identity) String() string {
	return fmt.Sprintf("%s <%s> %d %s", i.name, i.email, i.when.Unix(), i.when.Format("-0700"))
}

func (i identity) user() string { return fmt.Sprintf("%s <%s>", i.name, i.email) }

// identities returns author and committer. The author is the requested one, else that of the environment, else that
// of git's configuration, else reconcile. The committer cannot be requested, and falls back to the author.
func identities(ctx context.Context, c *gitConfig, author string, when time.Time) (a, m identity, err error) {
	user := configuredIdentity(ctx, c, "user", identity{})
	a = configuredIdentity(ctx, c, "author", user)
	if a, err = fromEnvironment("GIT_AUTHOR_", a, when); err != nil {
		return a, m, err
	}
	if author != "" {
		name, rest, ok := strings.Cut(author, "<")
		email, end, closed := strings.Cut(rest, ">")
		if a.name, a.email = strings.TrimSpace(name), strings.TrimSpace(email); !ok || !closed || a.name == "" || a.email == "" ||
			strings.TrimSpace(end) != "" {
			return a, m, fmt.Errorf("git.author %q: not of the form \"Name <mail>\"", author)
		}
	}
	if m, err = fromEnvironment("GIT_COMMITTER_", configuredIdentity(ctx, c, "committer", user), when); err != nil {
		return a, m, err
	}
	a = cleanIdentity(withDefaults(a, defaultIdentity))
	m = cleanIdentity(withDefaults(m, a))
	return a, m, nil
}

// configuredIdentity overrides other with <section>.name and <section>.email.
func configuredIdentity(ctx context.Context, c *gitConfig, section string, other identity) identity {
	if v, ok := c.get(ctx, section+".name"); ok {
		other.name = v
	}
	if v, ok := c.get(ctx, section+".email"); ok {
		other.email = v
	}
	return other
}

// fromEnvironment overrides other with <prefix>NAME, EMAIL and DATE.
func fromEnvironment(prefix string, other identity, when time.Time) (identity, error) {
	other.name = envOr(prefix+"NAME", other.name)
	other.email = envOr(prefix+"EMAIL", other.email)
	other.when = when
	if date := os.Getenv(prefix + "DATE"); date != "" {
		t, err := parseDate(date)
		if err != nil {
			return other, fmt.Errorf("%sDATE: %w", prefix, err)
		}
		other.when = t
	}
	return other, nil
}

// parseDate reads the documented forms of GIT_AUTHOR_DATE: git's own ("@1700000000 +0100"), RFC 2822 and ISO 8601.
func parseDate(s string) (time.Time, error) {
	seconds, zone, _ := strings.Cut(strings.TrimPrefix(s, "@"), " ")
	if n, err := strconv.ParseInt(seconds, 10, 64); err == nil && (len(seconds) > 8 || s[0] == '@') {
		if zone == "" {
			zone = "+0000"
		}
		z, err := time.Parse("-0700", zone)
		if err != nil {
			return time.Time{}, fmt.Errorf("%q: not a time zone like +0100", zone)
		}
		return time.Unix(n, 0).In(z.Location()), nil
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05",
		"Mon, 2 Jan 2006 15:04:05 -0700", "Mon Jan 2 15:04:05 2006 -0700"} {
		if t, err := time.Parse(form, s); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%q: not a date that reconcile reads; use 2006-01-02T15:04:05Z or \"@<seconds> <zone>\"", s)
}

// withDefaults fills missing fields from other. The time is always set.
func withDefaults(i, other identity) identity {
	if i.name == "" {
		i.name = other.name
	}
	if i.email == "" {
		i.email = other.email
	}
	return i
}

// cleanIdentity removes characters that would corrupt a commit's header, as git does.
func cleanIdentity(i identity) identity {
	crud := func(r rune) bool { return r <= ' ' || strings.ContainsRune(`.,:;<>"\'`, r) }
	strip := func(s string) string {
		s = strings.TrimFunc(s, crud)
		return strings.Map(func(r rune) rune {
			if r == '\n' || r == '<' || r == '>' || r == 0 {
				return -1
			}
			return r
		}, s)
	}
	i.name, i.email = strip(i.name), strip(i.email)
	return withDefaults(i, defaultIdentity)
}

// env is the identity as git's environment variables.
func (i identity) env(prefix string) []string {
	date := fmt.Sprintf("@%d %s", i.when.Unix(), i.when.Format("-0700"))
	return []string{prefix + "NAME=" + i.name, prefix + "EMAIL=" + i.email, prefix + "DATE=" + date}
}

func envOr(key, other string) string {
	if v := os.Getenv(key); v != "" {
		return v
	}
	return other
}

// signs reports whether commits are signed.
func signs(ctx context.Context, c *gitConfig, mode string) (bool, error) {
	switch mode {
	case "", "auto":
		return c.flag(ctx, "commit.gpgsign", false), nil
	case "always":
		return true, nil
	case "never":
		return false, nil
	}
	return false, fmt.Errorf("git.sign %q: not one of auto, always, never", mode)
}

// sign returns the signature of a commit object, created with the program that git would use.
func sign(ctx context.Context, c *gitConfig, w *scratchDir, committer identity, payload []byte) (string, error) {
	format, _ := c.get(ctx, "gpg.format")
	key, _ := c.get(ctx, "user.signingkey")
	var signature string
	var err error
	switch strings.ToLower(format) {
	case "", "openpgp":
		signature, err = signPGP(ctx, c.program(ctx, "openpgp", "gpg"), orString(key, committer.user()), payload)
	case "x509":
		signature, err = signPGP(ctx, c.program(ctx, "x509", "gpgsm"), orString(key, committer.user()), payload)
	case "ssh":
		signature, err = signSSH(ctx, c, w, key, payload)
	default:
		err = fmt.Errorf("gpg.format %q is not one of openpgp, x509, ssh", format)
	}
	if err != nil {
		return "", fmt.Errorf("sign the commit: %w; check user.signingKey and gpg.format, or set git.sign: never in "+
			"reconcile.yaml; nothing was committed", err)
	}
	return signature, nil
}

// program is gpg.<format>.program; gpg.program is the older name for openpgp.
func (c *gitConfig) program(ctx context.Context, format, other string) string {
	if p, ok := c.get(ctx, "gpg."+format+".program"); ok && p != "" {
		return p
	}
	if p, ok := c.get(ctx, "gpg.program"); ok && p != "" && format == "openpgp" {
		return p
	}
	return other
}

func signPGP(ctx context.Context, program, key string, payload []byte) (string, error) {
	cmd := exec.CommandContext(ctx, program, "--status-fd=2", "-bsau", key)
	cmd.Stdin = bytes.NewReader(payload)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", program, err, lastLine(stderr.String()))
	}
	if !strings.Contains("\n"+stderr.String(), "\n[GNUPG:] SIG_CREATED ") {
		return "", fmt.Errorf("%s reported no signature: %s", program, lastLine(stderr.String()))
	}
	return stdout.String(), nil
}

// signSSH signs with ssh-keygen -Y sign. The key is a file, or a public key whose private key is in an agent.
func signSSH(ctx context.Context, c *gitConfig, w *scratchDir, key string, payload []byte) (string, error) {
	key, err := sshKey(ctx, c, key)
	if err != nil {
		return "", err
	}
	args := []string{"-Y", "sign", "-n", "git", "-f"}
	if literal, ok := literalKey(key); ok {
		f, err := w.temp("key")
		if err != nil {
			return "", err
		}
		defer os.Remove(f.Name())
		if err := finishScratch(f, []byte(literal+"\n"), 0o600); err != nil {
			return "", err
		}
		args = append(args, f.Name(), "-U")
	} else {
		args = append(args, expandHome(key))
	}
	program := c.program(ctx, "ssh", "ssh-keygen")
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin = bytes.NewReader(payload) // without a file argument, ssh-keygen signs its input
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", program, err, lastLine(stderr.String()))
	}
	return stdout.String(), nil
}

// sshKey returns user.signingKey, else the output of gpg.ssh.defaultKeyCommand.
func sshKey(ctx context.Context, c *gitConfig, key string) (string, error) {
	if key != "" {
		return key, nil
	}
	line, _ := c.get(ctx, "gpg.ssh.defaultkeycommand")
	argv := strings.Fields(line)
	if len(argv) == 0 {
		return "", fmt.Errorf("gpg.format is ssh, but neither user.signingKey nor gpg.ssh.defaultKeyCommand is set")
	}
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
	if err != nil {
		return "", fmt.Errorf("gpg.ssh.defaultKeyCommand: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if _, ok := literalKey(strings.TrimSpace(line)); ok {
			return strings.TrimSpace(line), nil
		}
	}
	return "", fmt.Errorf("gpg.ssh.defaultKeyCommand printed no key")
}

// signatureHeader is the header of a commit that holds its signature.
func signatureHeader(signature string) string {
	signature = strings.TrimSuffix(strings.ReplaceAll(signature, "\r\n", "\n"), "\n")
	return "gpgsig " + strings.ReplaceAll(signature, "\n", "\n ") + "\n"
}
