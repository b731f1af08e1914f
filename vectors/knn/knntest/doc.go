// Package knntest makes vectors to test and measure nearest-neighbour search with, and knows their exact neighbours.
//
// How hard a set of vectors is to search depends on its local intrinsic dimension rather than on the number of its
// components (Aumüller and Ceccarello, "The Role of Local Intrinsic Dimensionality in Benchmarking Nearest Neighbor
// Search", 2019): independent random numbers in 768 dimensions are harder than any embeddings, and well separated
// clusters are easier. [Clustered] and [TextLike] vectors have one of 20 to 24, like sets of word and sentence
// embeddings; [Data.lid] estimates it after Levina and Bickel, "Maximum Likelihood Estimation of Intrinsic Dimension"
// (2004).
//
// The same [Spec] gives the same vectors in any number of goroutines.
package knntest
