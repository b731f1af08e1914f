package checks

import "fmt"

// Trials is how often a test passed and failed.
type Trials struct {
	Passed int `json:"passed"`
	Failed int `json:"failed"`
}

// Plus adds an outcome; one that is neither passed nor failed does not count.
func (t Trials) Plus(o TestOutcome) Trials {
	switch o {
	case TestPassed:
		t.Passed++
	case TestFailed:
		t.Failed++
	}
	return t
}

// Symptoms are the facts about a test that failed.
type Symptoms struct {
	Alone       Trials // runs of this test alone, on the same files
	Base        Trials // and in the commit before the change
	BaseTested  Trials // and there with the tests of the change
	Same        bool   // and each time there with the message that it has now
	TestChanged bool   // the change is about the file of the test
	CodeChanged bool   // the change is about other files of code
}

// Diagnosis is the conclusion from evidence, and the reason.
type Diagnosis struct {
	Test     string   `json:"test"`
	Suite    string   `json:"suite,omitempty"`
	Blame    Blame    `json:"blame"`
	Why      string   `json:"why"`
	Evidence Symptoms `json:"evidence"`
}

// Diagnose concludes what a failed test is a sign of.
func Diagnose(e Symptoms) (Blame, string) {
	alone, base, mixed := e.Alone, e.Base, e.BaseTested
	switch {
	case alone.Passed > 0 && alone.Failed > 0:
		return Flaky, fmt.Sprintf("alone it passed %d of %d times, on the same files", alone.Passed, alone.Passed+alone.Failed)
	case base.Passed > 0 && base.Failed > 0:
		return Flaky, fmt.Sprintf("in the commit before it passed %d of %d times", base.Passed, base.Passed+base.Failed)
	case alone.Passed > 0:
		return Dependent, fmt.Sprintf("it failed with the other tests, and passed %d of %d times alone", alone.Passed, alone.Passed)
	case base.Failed > 0:
		return Known, "it fails in the commit before, too"
	case alone.Failed == 0:
		return Unclear, "it could not be run alone"
	case base.Passed > 0 && e.CodeChanged && !e.TestChanged:
		return Implementation, "it passes in the commit before, and only other code changed since"
	case base.Passed > 0 && e.TestChanged && !e.CodeChanged:
		return OfTest, "it passes in the commit before, and only its own file changed since"
	case mixed.Passed > 0 && e.CodeChanged:
		return Implementation, "as it is now, it passes with the code of the commit before"
	case mixed.Failed > 0 && base.Passed > 0:
		return OfTest, "as it was, it passes with the code of the commit before, and as it is now, it fails there"
	case mixed.Failed > 0 && e.Same:
		return NoDifference, "it is new, and fails in the same way with the code of the commit before: either it asks for what is not done yet, or it is wrong"
	case mixed.Failed > 0:
		return Unclear, "it is new, and fails with the code of the commit before, too: either it asks for what is not done yet, or it is wrong"
	}
	return Unclear, "it fails alone; there is nothing to compare it with"
}
