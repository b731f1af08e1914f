package tools

import (
	"slices"
	"testing"
)

// What a tool leaves is known by its name, or by its name beside the manifest of the tool only.
func TestOutputs(t *testing.T) {
	files := []string{"Api.csproj", "crates/Cargo.toml", "java/pom.xml", "web/package.json", "app/src/main/java/A.java", "src/test/java/ATest.java"}
	outputs := []string{"__pycache__/a.pyc", "a/b/__pycache__/c.pyc", "a.pyc", ".coverage", "a/.coverage.host.12", "bin/Debug/a.dll", "obj/a.json", "crates/target/debug/a.d", "java/target/classes/A.class",
		"web/coverage/lcov.info", "web/node_modules/.cache/prettier/x", "node_modules/.vite/x", "tsconfig.tsbuildinfo", "c/a.gcda", ".eslintcache", "app/build/classes/A.class", "build/test-results/test/TEST-A.xml"}
	others := []string{"target/a.rs", "crates/a/target/a.rs", "java/build/A.java", "app/src/build/A.java", "bin.cs", "web/bin/a.js", "coverage/a.js", "node_modules/a/index.js", "a__pycache__/a.py", "__pycache__", "coverage.py", ".coveragerc",
		"Api.csproj", "src/obj", "java/targets/A.java"}
	files = slices.Concat(files, outputs, others)
	output := Outputs(files)
	for _, f := range files {
		if output(f) != slices.Contains(outputs, f) {
			t.Errorf("%s: %v", f, output(f))
		}
	}
}
