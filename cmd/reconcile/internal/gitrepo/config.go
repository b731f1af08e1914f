package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing/format/config"

	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/state/worktree"
)

// gitConfig is git's configuration: system, global, repository, work tree and environment, later ones winning.
type gitConfig struct {
	l     layout
	git   string // the git command, or ""
	files []*config.Config
	// opaque is set if a file includes others or uses syntax that go-git does not parse: then git is asked.
	opaque bool
}

// loadConfig reads the configuration files that git would read. An unreadable file is an error only if there is no
// git command to ask instead.
func loadConfig(l layout, git string) (*gitConfig, error) {
	c := &gitConfig{l: l, git: git, opaque: os.Getenv("GIT_CONFIG_PARAMETERS") != ""} // from git -c, in a private format
	for _, path := range configPaths(l) {
		cfg, err := l.recent.config(path)
		switch {
		case err != nil && git == "":
			return nil, fmt.Errorf("%s: %w", path, err)
		case err != nil:
			c.opaque = true
		case cfg != nil:
			c.files = append(c.files, cfg)
			c.opaque = c.opaque || includes(cfg)
		}
	}
	return c, nil
}

func includes(cfg *config.Config) bool {
	return cfg.HasSection("include") || cfg.HasSection("includeif") || cfg.HasSection("includeIf")
}

func configPaths(l layout) []string {
	var paths []string
	if no, _ := strconv.ParseBool(os.Getenv("GIT_CONFIG_NOSYSTEM")); !no {
		paths = append(paths, envOr("GIT_CONFIG_SYSTEM", "/etc/gitconfig"))
	}
	home, _ := os.UserHomeDir()
	if global := os.Getenv("GIT_CONFIG_GLOBAL"); global != "" {
		paths = append(paths, global)
	} else {
		xdg := envOr("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
		paths = append(paths, filepath.Join(xdg, "git", "config"), filepath.Join(home, ".gitconfig"))
	}
	return append(paths, filepath.Join(l.common, "config"), filepath.Join(l.gitDir, "config.worktree"))
}

// withoutFilters reports that no filter driver can be in the configuration, since no file of it contains the word: the names of sections are
// written as they are.
func (l layout) withoutFilters(environ []string) bool {
	for _, kv := range environ {
		if strings.HasPrefix(kv, "GIT_CONFIG_COUNT=") || strings.HasPrefix(kv, "GIT_CONFIG_PARAMETERS=") {
			return false
		}
	}
	for _, file := range configPaths(l) {
		text, err := regular.ReadPath(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
			return false
		}
		if text = bytes.ToLower(text); bytes.Contains(text, []byte("filter")) || bytes.Contains(text, []byte("include")) {
			return false
		}
	}
	return true
}

// userFile returns the file that a setting names, else the default file of that name in the user's git
// configuration.
func (c *gitConfig) userFile(ctx context.Context, key, other string) string {
	if v, ok := c.get(ctx, key); ok {
		return worktree.Absolute(c.l.worktree, expandHome(v))
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(envOr("XDG_CONFIG_HOME", filepath.Join(home, ".config")), "git", other)
}

// get returns the last value of "section.key" or "section.subsection.key", and whether there is one.
func (c *gitConfig) get(ctx context.Context, name string) (string, bool) {
	if v, ok := environmentConfig(name); ok {
		return v, true
	}
	if c.opaque && c.git != "" {
		out, err := newGit(ctx, readOnly, c.git, c.l.worktree, os.Environ(), "config", "--get", name).Output()
		return strings.TrimSuffix(string(out), "\n"), err == nil
	}
	section, key := name[:strings.IndexByte(name, '.')], name[strings.LastIndexByte(name, '.')+1:]
	sub := strings.Trim(strings.TrimSuffix(strings.TrimPrefix(name, section), key), ".")
	for i := len(c.files) - 1; i >= 0; i-- {
		if !c.files[i].HasSection(section) {
			continue
		}
		options := c.files[i].Section(section).Options
		if sub != "" { // Subsection adds a missing one, and others read the file, too
			if options = nil; c.files[i].Section(section).HasSubsection(sub) {
				options = c.files[i].Section(section).Subsection(sub).Options
			}
		}
		if options.Has(key) {
			return options.Get(key), true
		}
	}
	return "", false
}

// environmentConfig reads GIT_CONFIG_COUNT, GIT_CONFIG_KEY_<n> and GIT_CONFIG_VALUE_<n>.
func environmentConfig(name string) (string, bool) {
	n, _ := strconv.Atoi(os.Getenv("GIT_CONFIG_COUNT"))
	for i := n - 1; i >= 0; i-- {
		if strings.EqualFold(os.Getenv(fmt.Sprintf("GIT_CONFIG_KEY_%d", i)), name) {
			return os.Getenv(fmt.Sprintf("GIT_CONFIG_VALUE_%d", i)), true
		}
	}
	return "", false
}

// flag reads a boolean; other is the value of an absent key.
func (c *gitConfig) flag(ctx context.Context, name string, other bool) bool {
	v, ok := c.get(ctx, name)
	if !ok {
		return other
	}
	switch strings.ToLower(v) {
	case "", "true", "yes", "on": // a key without a value is true
		return true
	case "false", "no", "off":
		return false
	}
	n, err := strconv.Atoi(v)
	return err == nil && n != 0
}

// Configure sets values in the configuration of the repository by name ("merge.reconcile.driver"), with the git config
// command. It skips values that the repository's or the user's configuration already has; changed reports whether it
// set any.
func (r *Repo) Configure(ctx context.Context, values ...[2]string) (changed bool, err error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return false, fmt.Errorf("%s: git config: %w", r.worktree, err)
	}
	for _, v := range values {
		run := func(args ...string) ([]byte, error) {
			return newGit(ctx, readOnly, git, r.worktree, os.Environ(), append([]string{"config"}, args...)...).CombinedOutput()
		}
		if was, err := run("--get", v[0]); err == nil && string(bytes.TrimSpace(was)) == v[1] {
			continue
		}
		changed = true
		if out, err := run("--replace-all", v[0], v[1]); err != nil {
			return false, fmt.Errorf("%s: git config %s: %w: %s", r.worktree, v[0], err, bytes.TrimSpace(out))
		}
	}
	return changed, nil
}

func literalKey(key string) (string, bool) {
	if literal, ok := strings.CutPrefix(key, "key::"); ok {
		return literal, true
	}
	return key, strings.HasPrefix(key, "ssh-")
}

// expandHome is the path in a setting of git that may begin with ~/.
func expandHome(p string) string {
	if rest, ok := strings.CutPrefix(p, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return p
}
