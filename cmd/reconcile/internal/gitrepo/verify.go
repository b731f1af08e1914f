package gitrepo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"reconcile.dev/reconcile/state/regular"
)

// Signer is someone whose signature is known: an SSH public key, or the fingerprint of an OpenPGP key.
type Signer struct {
	Name string
	Key  string
	SSH  bool
}

// Addition is the commit that added a file.
type Addition struct {
	Commit string // "" if there is none
	// Why says why the commit proves nothing of the file as it is now; "" if it does.
	Why string
}

// AdditionOf finds the commit that added a file, which is named below dir. The file proves nothing once a later commit has changed it,
// or while it differs from the commit.
func AdditionOf(ctx context.Context, dir string, environ []string, name string, content []byte) (Addition, error) {
	out, err := inspectOutput(ctx, dir, environ, "log", "--format=%H %P", "--full-history", "--", name)
	if err != nil {
		return Addition{}, err
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	commit, parents, _ := strings.Cut(lines[0], " ")
	switch {
	case commit == "":
		return Addition{Why: "it is not committed"}, nil
	case len(lines) > 1:
		return Addition{Why: "it was changed after the commit that added it"}, nil
	case parents == "":
		shallow, err := inspectOutput(ctx, dir, environ, "rev-parse", "--is-shallow-repository")
		if err != nil {
			return Addition{}, err
		}
		if strings.TrimSpace(shallow) == "true" {
			return Addition{Why: "the clone is shallow, and does not have the commit that added it"}, nil
		}
	}
	was, err := inspectOutput(ctx, dir, environ, "show", commit+":./"+name)
	if err != nil {
		return Addition{}, err
	}
	if !bytes.Equal([]byte(was), content) {
		return Addition{Commit: commit, Why: "it differs from commit " + commit[:12] + ", which added it"}, nil
	}
	return Addition{Commit: commit}, nil
}

func inspectOutput(ctx context.Context, dir string, environ []string, args ...string) (string, error) {
	cmd := Inspect(ctx, dir, environ, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, lastLine(stderr.String()))
	}
	return stdout.String(), nil
}

// SignedBy says whose signature a commit has; "" if it has none of the signers, with the reason. Only gpg and ssh-keygen are run.
func SignedBy(ctx context.Context, dir string, environ []string, commit string, signers []Signer) (name, why string, err error) {
	scratch, err := os.MkdirTemp("", "reconcile-signers-")
	if err != nil {
		return "", "", err
	}
	defer os.RemoveAll(scratch) //nolint:errcheck // the system removes the rest
	root, err := regular.Root(scratch)
	if err != nil {
		return "", "", err
	}
	defer root.Close()
	const allowedFile = "allowed"
	if err := regular.Write(root, allowedFile, allowedSigners(signers), 0o600); err != nil {
		return "", "", err
	}
	allowed := filepath.Join(scratch, allowedFile)
	cmd := Inspect(ctx, dir, environ, "-c", "gpg.ssh.allowedSignersFile="+allowed, "-c", "gpg.ssh.program=ssh-keygen", "-c", "gpg.ssh.revocationFile=",
		"-c", "gpg.program=gpg", "-c", "gpg.openpgp.program=gpg", "-c", "gpg.minTrustLevel=undefined", "verify-commit", "--raw", commit)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	err = cmd.Run()
	if failed := new(exec.ExitError); err != nil && !errors.As(err, &failed) {
		return "", "", fmt.Errorf("git verify-commit: %w", err)
	}
	if err == nil {
		if s := signerIn(stderr.String(), signers); s != nil {
			return s.Name, "", nil
		}
	}
	if strings.TrimSpace(stderr.String()) == "" {
		return "", "commit " + commit[:12] + " is not signed", nil
	}
	return "", "the signature of commit " + commit[:12] + " is by no key of people in the settings", nil
}

// allowedSigners is a file of ssh-keygen; the principal of a signer is its number.
func allowedSigners(signers []Signer) []byte {
	var b bytes.Buffer
	for i, s := range signers {
		if s.SSH {
			fmt.Fprintf(&b, "signer%d@reconcile namespaces=\"git\" %s\n", i, s.Key)
		}
	}
	return b.Bytes()
}

// signerIn finds the signer in what a successful verification printed.
func signerIn(text string, signers []Signer) *Signer {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for i := range signers {
			s := &signers[i]
			if s.SSH && strings.HasPrefix(line, fmt.Sprintf("Good \"git\" signature for signer%d@reconcile with ", i)) {
				return s
			}
			if fields := strings.Fields(line); !s.SSH && len(fields) > 2 && fields[0] == "[GNUPG:]" && fields[1] == "VALIDSIG" &&
				(strings.EqualFold(fields[2], s.Key) || strings.EqualFold(fields[len(fields)-1], s.Key)) {
				return s
			}
		}
	}
	return nil
}
