package index_test

import (
	"testing"

	"reconcile.dev/reconcile/vectors/knn"
)

// The defaults of the settings are those that vectors were measured with, and what searches keep is measured; a build and
// searches get what is set.
func TestSettingsOfVectors(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"notes.md": "# Notes\n\nA zeppelin is slow.\n"})
	x := r.refresh()
	got := [...]int{x.Stored.Dims, x.Stored.M, x.Stored.EfConstruction, x.Stored.EfSearch, x.Stored.EfThorough}
	if want := [...]int{knn.DefaultDims, knn.DefaultM, knn.DefaultEfConstruction, 0, 0}; got != want {
		t.Errorf("without settings %v, want %v", got, want)
	}
	x.Close()
	r.write("reconcile.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec:\n"+
		"  index: {dimensions: 96, m: 5, efConstruction: 30, efSearch: 7, efThorough: 9}\n")
	x = r.refresh()
	defer x.Close()
	got = [...]int{x.Stored.Dims, x.Stored.M, x.Stored.EfConstruction, x.Stored.EfSearch, x.Stored.EfThorough}
	if want := [...]int{96, 5, 30, 7, 9}; got != want || x.How.Rebuilt == "" {
		t.Errorf("with settings %v, want %v; rebuilt: %q", got, want, x.How.Rebuilt)
	}
}
