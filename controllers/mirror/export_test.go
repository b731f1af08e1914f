package mirror

// For the tests that also need the decisions.
var (
	SomeOptions = someOptions
	Harmless    = harmless
	Units       = bodyUnits
	MarkerRoom  = markerRoom
	Gap         = gap
)
