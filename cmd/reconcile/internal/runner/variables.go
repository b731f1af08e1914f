package runner

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/acp"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// longestVariable bounds a value that is read from a file, in bytes.
const longestVariable = 64 << 10

// readVariables reads the values of the task's variables that the spec does not have.
func (a *attempt) readVariables() (err error) {
	if a.dialogue != nil {
		return nil // there is no program
	}
	a.read, err = a.runner.variables(a.task.EnvFrom)
	return err
}

// variables reads the values of variables, and hides them from now on in all that is written. An error names the variable and what to
// do, and never a value.
func (r *Runner) variables(from []settle.Variable) (read []string, err error) {
	for i := range from {
		value, err := r.variable(&from[i])
		if err != nil {
			return nil, err
		}
		r.secrets.hideLines(value)
		read = append(read, from[i].Variable+"="+value)
	}
	return read, nil
}

// readServers makes the list of servers that the agent gets. A program that is not there is an error: agents go on without it.
func (t *talk) readServers() error {
	for _, s := range t.task.Servers {
		path, err := findProgram(s.Argv[0], t.a.command.dir, lookup(t.a.command.env, "PATH"))
		read, readErr := t.a.runner.variables(s.EnvFrom)
		if err = cmp.Or(err, readErr); err != nil {
			return fmt.Errorf("MCP server %s: %w", s.Name, err)
		}
		server := acp.Server{Name: s.Name, Command: path, Args: append([]string{}, s.Argv[1:]...), Env: []acp.Variable{}}
		for _, kv := range slices.Concat(s.Env, read) {
			name, value, _ := strings.Cut(kv, "=")
			server.Env = append(server.Env, acp.Variable{Name: name, Value: value})
		}
		t.servers = append(t.servers, server)
	}
	return nil
}

// variable reads the value of a variable.
func (r *Runner) variable(v *settle.Variable) (value string, err error) {
	if v.From == schemas.EnvFromFile {
		if value, err = r.variableFile(v); err != nil {
			return "", err
		}
	} else if value = lookup(r.o.Environ, v.Source(v.Variable)); value == "" {
		return "", v.Missing(v.Variable)
	}
	if strings.ContainsRune(value, 0) {
		return "", fmt.Errorf("variable %s: its value has a NUL character, and no variable can", v.Variable)
	}
	return value, nil
}

// variableFile reads the file that has the value of a variable.
func (r *Runner) variableFile(v *settle.Variable) (string, error) {
	file := filepath.FromSlash(v.Path)
	if rest, ok := strings.CutPrefix(v.Path, "~/"); ok {
		home := lookup(r.o.Environ, "HOME")
		if home == "" {
			return "", fmt.Errorf("variable %s: there is no home folder for %s; set HOME, or write an absolute path", v.Variable, v.Path)
		}
		file = filepath.Join(home, filepath.FromSlash(rest))
	} else if !filepath.IsAbs(file) {
		file = r.absolute(v.Path)
	}
	data, err := regular.ReadPath(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", v.Missing(v.Variable)
	case err != nil:
		return "", fmt.Errorf("variable %s: %s cannot be read: %w; change its mode, or path", v.Variable, v.Path, regular.Cause(err))
	case len(data) > longestVariable:
		return "", fmt.Errorf("variable %s: %s has more than %d bytes; hand large values over in files", v.Variable, v.Path, longestVariable)
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r"), nil
}
