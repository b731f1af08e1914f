package secrets

import (
	"strings"
)

// Rules of this package, where those of gitleaks look for less than must not be written.
const (
	rulePassword   = "password"             // the value of a password-like name, however simple
	ruleAssignment = "secret-assignment"    // the value of a name like token or secret, if it looks made up
	ruleURL        = "url-password"         // scheme://user:password@host
	ruleDSN        = "connection-string"    // user:password@tcp(host), jdbc:oracle:thin:user/password@host, a line of .pgpass
	ruleCommand    = "command-password"     // docker login -p password
	ruleKey        = "private-key"          // PEM, also escaped or cut off
	ruleHeader     = "authorization-header" // Authorization: Bearer …
	ruleKubernetes = "kubernetes-secret"    // data of a Secret
)

// ownTokens are secrets that show by their form. Rules of gitleaks for the same want them longer, or more random, or
// less like an example.
var ownTokens = []struct {
	id, heads, pattern string
	entropy            float64
}{
	{"aws-access-key-id", "=AKIA =ASIA =ABIA =ACCA =A3T", `(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b`, 2},
	{"github-token", "=ghp_ =gho_ =ghu_ =ghs_ =ghr_", `gh[pousr]_[0-9A-Za-z]{30,255}`, 2.5},
	{"openai-key", "=sk-", `sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_]*[0-9][A-Za-z0-9_-]{19,}`, 3},
	{"anthropic-key", "=sk-ant-", `sk-ant-[A-Za-z0-9_-]{16,}`, 2.5},
	{"google-oauth-secret", "=GOCSPX-", `GOCSPX-[A-Za-z0-9_-]{20,}`, 2.5},
	{"google-oauth-token", "=ya29.", `ya29\.[A-Za-z0-9_-]{20,}`, 3},
	{"discord-webhook", "~discord.com/api/webhooks/ ~discordapp.com/api/webhooks/",
		`(?i)discord(?:app)?\.com/api/webhooks/\d+/([A-Za-z0-9_-]{20,})`, 3},
	{"azure-signature", "=sig=", `sig=([A-Za-z0-9%+/=_-]{30,})`, 3},
	{ruleCommand, "~mysql", `(?i)mysql\w*[ \t][^\n]{0,200}?[ \t]-p([^\s'"o-][^\s'"]{2,})`, 0},
	{ruleCommand, "~sshpass", `(?i)sshpass[ \t]+-p[ \t]?['"]?([^\s'"]+)`, 0},
	{ruleCommand, "~redis-cli", `(?i)redis-cli[ \t][^\n]{0,200}?-a[ \t]+['"]?([^\s'"]{3,})`, 0},
	{"registry-token", "=_auth= =_authToken=", `_auth(?:Token)?=([A-Za-z0-9+/=_.-]{8,})`, 2},

	// Passwords as Apache's htpasswd hashes them (httpd's manual, "Password Formats"); a Compose file doubles each dollar.
	{"password-hash", "=apr1$", `apr1\$\$?([./A-Za-z0-9]{1,8}\$\$?[./A-Za-z0-9]{22})`, 0},
	{"password-hash", "=2a$ =2b$ =2x$ =2y$", `2[abxy]\$\$?[0-9]{2}\$\$?([./A-Za-z0-9]{53})`, 0},
	{"password-hash", "=SHA", `SHA\}([A-Za-z0-9+/]{27}=)`, 0},
}

// ownWords lead to the rules that are functions.
var ownWords = []struct {
	word string
	act  func(s *secretScanner, end int)
}{
	{"pass", (*secretScanner).password}, {"pwd", (*secretScanner).password}, {"pswd", (*secretScanner).password},
	{"secret", (*secretScanner).assignment}, {"token", (*secretScanner).assignment}, {"credential", (*secretScanner).assignment},
	{"key", (*secretScanner).assignment}, {"auth", (*secretScanner).assignment}, {"cookie", (*secretScanner).assignment},
	{"://", (*secretScanner).url},
	{"@tcp(", (*secretScanner).dsn}, {"@unix(", (*secretScanner).dsn}, {"jdbc:oracle:", (*secretScanner).oracle},
	{"-----begin ", (*secretScanner).keyBegin}, {"-----end ", (*secretScanner).keyEnd}, {"---- begin ssh2 ", (*secretScanner).keyBegin},
	{"bearer ", (*secretScanner).bearer}, {"authorization", (*secretScanner).authorization},
	{"kind:", (*secretScanner).kubernetes}, {"identified ", (*secretScanner).identified}, {"login", (*secretScanner).login},
	// The port of a server of PostgreSQL, of PgBouncer, or any.
	{":543", (*secretScanner).pgpass}, {":6432", (*secretScanner).pgpass}, {":*:", (*secretScanner).pgpass},
}

// ours reports whether text is an id that reconcile makes.
func ours(text string) bool {
	return strings.HasPrefix(text, "obs-") || strings.HasPrefix(text, "CLR-") || strings.HasPrefix(text, "sha256:")
}

// apartFromMarks removes the marks of earlier redactions from the findings.
func apartFromMarks(text string, found []Finding) []Finding {
	if !strings.Contains(text, markStart) {
		return found
	}
	var out []Finding
	for _, f := range found {
		for from := f.Start; from < f.End; {
			start, end := nextMark(text, from, f.End)
			if piece := text[from:start]; strings.ContainsFunc(piece, telling) {
				out = append(out, Finding{f.Rule, from, start})
			}
			from = end
		}
	}
	return out
}

// markEnds returns the end of the mark at start, 0 if it is not a mark.
func markEnds(text string, start int) int {
	for i := start + len(markStart); i < min(len(text), start+maxMark); i++ {
		if c := text[i]; c == ']' {
			return i + 1
		} else if !isLower(c) && !isDigit(c) && c != '-' {
			break
		}
	}
	return 0
}
