package githubtest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// Accounts of the emulator.
const (
	Bot      = "reconcile-rig" // the account of the client under test: may write to the repositories
	Owner    = "octo"          // owns the repositories
	Mona     = "mona"          // a collaborator
	Stranger = "hubot"         // any other account
	Org      = "acme"          // an organization, with the team Team that Mona is in
	Team     = "releasers"
)

var accounts = []string{Owner, Bot, Mona, Stranger}

// Token returns the token of an account.
func Token(login string) string { return "rig-token-of-" + login }

// emulator is the process that all rigs of a test program share. It ends with the program, since it reads from a pipe
// that the program holds.
type emulator struct {
	url *url.URL
	dir string    // the folder of the installed parts
	in  io.Writer // the write end of the pipe that it waits for; kept open

	mu   sync.Mutex
	n    int            // repositories created
	used map[string]int // the number of uses of each token
}

// running starts the emulator once for the program.
var running = sync.OnceValues(startEmulator)

func startEmulator() (*emulator, error) {
	dir, err := Folder()
	if err != nil {
		return nil, err
	}
	if err := found(dir); err != nil {
		return nil, err
	}
	seed, err := json.Marshal(seeds())
	if err != nil {
		return nil, err
	}
	program := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(dir, "node_modules", "emulate", "dist", "api.js"))}
	if !strings.HasPrefix(program.Path, "/") {
		program.Path = "/" + program.Path // C:/… on Windows
	}
	cmd := exec.Command(node(dir), "--input-type=module", "--eval", string(server), program.String())
	complaints := new(strings.Builder)
	cmd.Stderr = complaints
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("the emulator of GitHub: %w", err)
	}
	if _, err := fmt.Fprintf(stdin, "%s\n", seed); err != nil {
		return nil, fmt.Errorf("the emulator of GitHub: %w", err)
	}
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		return nil, fmt.Errorf("the emulator of GitHub ended before it served: %w\n%s", err, complaints)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	u, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		return nil, fmt.Errorf("the emulator of GitHub: %w", err)
	}
	u.Host = "127.0.0.1:" + u.Port() // the resolver may map "localhost" to another address
	e := &emulator{url: u, dir: dir, in: stdin, used: map[string]int{}}
	return e, e.makeTeam()
}

// makeTeam creates Team, with Mona in it.
func (e *emulator) makeTeam() error {
	team := map[string]any{"name": Team, "privacy": "closed"}
	if err := e.do(Token(Owner), "POST", "/orgs/"+Org+"/teams", team, nil); err != nil {
		return err
	}
	member := "/orgs/" + Org + "/teams/" + Team + "/memberships/" + Mona
	return e.do(Token(Owner), "PUT", member, map[string]any{"role": "member"}, nil)
}

// seeds is the initial data of the emulator: accounts and their tokens.
func seeds() any {
	users, tokens := []map[string]any{}, map[string]any{}
	for _, login := range accounts {
		users = append(users, map[string]any{"login": login, "name": login, "email": login + "@rig.test"})
		for n := range tokensEach {
			tokens[numbered(Token(login), n)] = map[string]any{"login": login, "scopes": []string{"repo", "user", "admin:org"}}
		}
	}
	orgs := []map[string]any{{"login": Org, "name": Org, "members": []map[string]any{{"login": Owner, "role": "admin"}}}}
	return map[string]any{"tokens": tokens, "github": map[string]any{"users": users, "orgs": orgs}}
}

// The emulator gives each token 5000 requests in an hour, which a program with many repositories would use up. So each
// account has several tokens in the emulator, which clients do not see.
const (
	tokensEach = 50
	usesEach   = 4500
)

// token returns one of the emulator's tokens for an account.
func (e *emulator) token(of string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.used[of]++
	return numbered(of, min(e.used[of]/usesEach, tokensEach-1))
}

func numbered(token string, n int) string {
	if n == 0 || token == "" {
		return token
	}
	return fmt.Sprintf("%s-%d", token, n)
}

// repository returns a repository name that is unique in this program.
func (e *emulator) repository() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.n++
	return fmt.Sprintf("%s/widgets-%d", Owner, e.n)
}
