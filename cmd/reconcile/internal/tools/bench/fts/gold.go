package main

import (
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/vectors/lexical"
)

// readGold reads the observations of a gold set, as the memory would keep and index them, and its questions.
func readGold(dir string) (docs []lexical.Document, ids []string, questions []memory.Question, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "questions.jsonl"))
	if err != nil {
		return nil, nil, nil, err
	}
	if questions, err = memory.ParseGold(data); err != nil {
		return nil, nil, nil, err
	}
	files, err := filepath.Glob(filepath.Join(dir, "specs", "observations", "*.yaml"))
	if err != nil || len(files) == 0 {
		return nil, nil, nil, fmt.Errorf("%s has no observations: %w", dir, err)
	}
	for _, file := range files {
		if data, err = os.ReadFile(file); err != nil {
			return nil, nil, nil, err
		}
		var object struct {
			Metadata schemas.Metadata
			Spec     schemas.ObservationSpec
		}
		if err := yaml.Unmarshal(data, &object); err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		s := &object.Spec
		for place, e := range s.Entries {
			docs = append(docs, lexical.Document{Title: memory.Summary(e.Content), Body: e.Content})
			ids = append(ids, memory.NewID(s.Agent, s.Issue, s.Timestamp.Time, object.Metadata.Name, place, e.Content))
		}
	}
	return docs, ids, questions, nil
}
