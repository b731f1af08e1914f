package ops

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// Explanation is a field of a kind.
type Explanation struct {
	Kind schemas.Kind
	schemas.Explanation
}

// Explain finds the kind and the path of a field, such as "dag.spec.nodes.needs", and returns its Explanation.
func Explain(_ context.Context, env Env, field string) (Explanation, error) {
	word, rest, _ := strings.Cut(field, ".")
	k, err := findKind(env, word)
	if err != nil {
		return Explanation{}, err
	}
	var path []string
	if rest != "" {
		path = strings.Split(rest, ".")
	}
	e, err := schemas.Explain(k, path)
	if err != nil {
		return Explanation{}, badRequest("%v", err)
	}
	return Explanation{k, e}, nil
}

// ExplainSchema returns the JSON Schema of a kind by its name.
func ExplainSchema(_ context.Context, env Env, kind string) ([]byte, error) {
	k, err := findKind(env, kind)
	if err != nil {
		return nil, err
	}
	return schemas.Schema(k), nil
}

// WriteSchemas writes the JSON Schema of each kind to a .schema.json file in a folder, and returns the names of the
// written files. Existing files are replaced, since they are derived.
func WriteSchemas(ctx context.Context, env Env, dir string) (written []string, err error) {
	defer func() { err = typed(err) }()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the folder for the schemas: %w", err)
	}
	for _, k := range env.kinds() {
		name := filepath.Join(dir, k.Singular()+".schema.json")
		if err := os.WriteFile(name, schemas.Schema(k), 0o644); err != nil {
			return written, fmt.Errorf("write a schema: %w", err)
		}
		written = append(written, name)
	}
	return written, nil
}
