package gitrepo

import (
	"context"
	"fmt"
	"os"
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
