package gitrepo

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

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
