package checks

import "testing"

// TestPartition: each finding and test is in one of the two parts, and what passed is in the second.
func TestPartition(t *testing.T) {
	all := []Check{{Tool: "x", Outcome: Failed, Output: "said", Findings: []Finding{{File: "a"}, {File: "b"}, {File: ""}},
		Tests: []Test{{Name: "1", File: "a", Outcome: TestPassed}, {Name: "2", File: "a", Outcome: TestFailed}, {Name: "3", File: "b", Outcome: TestFailed}}}}
	first, second, n := Partition(all, func(f string) bool { return f == "a" })
	if n != 2 || len(first) != 1 || len(first[0].Findings) != 1 || len(first[0].Tests) != 1 || first[0].Tests[0].Name != "2" || first[0].Output != "" {
		t.Errorf("%d: %+v", n, first)
	}
	if len(second[0].Findings) != 2 || len(second[0].Tests) != 2 || second[0].Output != "said" || second[0].Outcome != Failed {
		t.Errorf("%+v", second)
	}
	if len(all[0].Findings) != 3 || len(all[0].Tests) != 3 {
		t.Error("the checks changed")
	}
}
