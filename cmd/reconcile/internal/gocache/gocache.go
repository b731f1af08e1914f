// Package gocache is a cache program of the go command: it answers from a cache that is only read, and keeps what is new in a folder of its own. So
// programs that nobody trusts build with what others compiled, and change nothing that others use.
package gocache

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/state/regular"
)

// word is the first argument of a process that is a cache program.
const word = "serve-go-cache"

// Program is the value of GOCACHEPROG, which Go reads from version 1.24 on: the program self serves the caches in the folders shared, and keeps
// what is new in own; "" is a folder of the process' cache folder. It is "" for paths that cannot be quoted there.
func Program(self, own string, shared ...string) string {
	words := append([]string{self, word, own}, shared...)
	if strings.Contains(strings.Join(words, ""), `"`) {
		return ""
	}
	return `"` + strings.Join(words, `" "`) + `"`
}

// Main is the whole program in a process that Program started, and returns in all others.
func Main(args []string) {
	if len(args) < 3 || args[1] != word {
		return
	}
	own, err := args[2], error(nil)
	if own == "" {
		own, err = os.UserCacheDir()
		own = filepath.Join(own, "go-layer")
	}
	if err == nil {
		err = serve(own, args[3:], os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cache of the go command:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// request and response are those of cmd/go/internal/cacheprog.
type request struct {
	ID       int64
	Command  string
	ActionID []byte
	OutputID []byte
	BodySize int64
}

type response struct {
	ID            int64
	Err           string   `json:",omitempty"`
	KnownCommands []string `json:",omitempty"`
	Miss          bool     `json:",omitempty"`
	OutputID      []byte   `json:",omitempty"`
	Size          int64    `json:",omitempty"`
	DiskPath      string   `json:",omitempty"`
}

// serve answers the requests of a go command until it ends.
func serve(own string, shared []string, in io.Reader, out io.Writer) error {
	to := bufio.NewWriter(out)
	answer := func(r response) error { return errors.Join(json.NewEncoder(to).Encode(r), to.Flush()) }
	if err := answer(response{KnownCommands: []string{"get", "put", "close"}}); err != nil {
		return err
	}
	for from := json.NewDecoder(bufio.NewReader(in)); ; {
		var q request
		if err := from.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		r := response{ID: q.ID}
		switch q.Command {
		case "get":
			for _, dir := range append([]string{own}, shared...) {
				if r.OutputID, r.Size, r.DiskPath = get(dir, q.ActionID); r.DiskPath != "" {
					break
				}
			}
			r.Miss = r.DiskPath == ""
		case "put":
			var body []byte
			if q.BodySize > 0 {
				if err := from.Decode(&body); err != nil {
					return err
				}
			}
			var err error
			if r.DiskPath, err = put(own, q, body); err != nil {
				r.Err = err.Error()
			}
		case "close":
			return answer(r)
		}
		if err := answer(r); err != nil {
			return err
		}
	}
}

// get looks an action up in a folder that has the form of the go command's own cache; the path is "" if it is not there.
func get(dir string, action []byte) (output []byte, size int64, at string) {
	entry, err := regular.ReadPath(file(dir, action, "a"))
	f := strings.Fields(string(entry)) // v1 ACTION OUTPUT SIZE TIME
	if err != nil || len(f) != 5 || f[0] != "v1" || f[1] != hex.EncodeToString(action) {
		return nil, 0, ""
	}
	output, err = hex.DecodeString(f[2])
	size, sizeErr := strconv.ParseInt(f[3], 10, 64)
	if err != nil || sizeErr != nil || len(output) == 0 {
		return nil, 0, ""
	}
	at = file(dir, output, "d")
	if fi, err := os.Stat(at); err != nil || fi.Size() != size || !fi.Mode().IsRegular() {
		return nil, 0, "" // the go command removes what was not used for a while
	}
	return output, size, at
}

// put keeps the output of an action.
func put(dir string, q request, body []byte) (at string, err error) {
	if len(q.ActionID) == 0 || len(q.OutputID) == 0 || int64(len(body)) != q.BodySize {
		return "", errors.New("the request is not complete")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	root, err := regular.Root(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	write := func(name string, data []byte) error {
		return errors.Join(root.MkdirAll(filepath.Dir(name), 0o700), regular.Write(root, name, data, 0o600))
	}
	return file(dir, q.OutputID, "d"), errors.Join(write(file("", q.OutputID, "d"), body),
		write(file("", q.ActionID, "a"), fmt.Appendf(nil, "v1 %x %x %20d %20d\n", q.ActionID, q.OutputID, q.BodySize, 0)))
}

func file(dir string, id []byte, kind string) string {
	name := hex.EncodeToString(id)
	return filepath.Join(dir, name[:min(2, len(name))], name+"-"+kind)
}
