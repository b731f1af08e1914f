package checking

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"reconcile.dev/reconcile/controllers/tools"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/regular"
)

const (
	proofsFile = "controls.json"
	mostProofs = 1000
)

// Proofs remembers which tools found the faults of their positive controls, in a folder of the user's caches. A tool is asked again when its
// program, its command or its control is another one. A nil Proofs remembers nothing.
type Proofs struct {
	dir string

	mu   sync.Mutex
	keys map[string]bool
	new  bool
}

// OpenProofs reads the proofs in a folder, which may be missing. A damaged proof is made again.
func OpenProofs(dir string) *Proofs {
	p := &Proofs{dir: dir, keys: map[string]bool{}}
	if data, err := regular.ReadPath(filepath.Join(dir, proofsFile)); err == nil {
		var keys []string
		if json.Unmarshal(data, &keys) == nil {
			for _, k := range keys {
				p.keys[k] = true
			}
		}
	}
	return p
}

// Save writes the new proofs.
func (p *Proofs) Save() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.new {
		return nil
	}
	if len(p.keys) > mostProofs {
		p.keys = map[string]bool{}
	}
	data, err := json.Marshal(slices.Sorted(maps.Keys(p.keys)))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return err
	}
	root, err := regular.Root(p.dir)
	if err != nil {
		return err
	}
	err = durable.Replace(root, "tmp", proofsFile, append(data, '\n'))
	return errors.Join(err, root.Close())
}

func (p *Proofs) known(key string) bool {
	if p == nil || key == "" {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[key]
}

func (p *Proofs) add(key string) {
	if p == nil || key == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys[key], p.new = true, true
}

// proofKey identifies what a positive control proves: a program's file, its version, command, format and control; "" if the file is not there.
func proofKey(t tools.Discovered) string {
	fi, err := os.Stat(t.Program)
	if err != nil {
		return ""
	}
	data, err := json.Marshal([]any{t.Tool, t.Category, t.Program, fi.Size(), fi.ModTime().UnixNano(), t.Version, t.Role})
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %s", t.Tool, hex.EncodeToString(sum(data)))
}

func sum(data []byte) []byte {
	s := sha256.Sum256(data)
	return s[:16]
}
