package controllers

// World is what decisions over one tree share.
type World struct{}
