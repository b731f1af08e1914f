package schemas

// What becomes of running work when the spec of its DAG changes.
const (
	OnChangeReplace      = "replace"
	OnChangeMergePending = "mergePending"
	OnChangeAbort        = "abort"
)
