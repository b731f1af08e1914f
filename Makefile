# A menu; everything in it can be had without make, too. CI calls the same words.
SHELL := /bin/sh
CHECK := go run ./cmd/reconcile/internal/tools/check
N ?= 10000
DIR ?= dist/tree
# Without cgo the program is one static file: it needs nothing of the system, and starts a millisecond sooner.
BUILD := go build -trimpath -ldflags='-s -w'
VERSION ?= $(shell git describe --tags --always --dirty)

.DEFAULT_GOAL := help
.PHONY: help build test lint race generate verify bench bench-tree cover clean release container

help: ## Show this menu
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build bin/reconcile
	CGO_ENABLED=0 $(BUILD) -o bin/reconcile ./cmd/reconcile

test: ## Check everything, as CI does
	$(CHECK)

lint: ## Check format, vet, staticcheck, workflows and import rules
	$(CHECK) format vet staticcheck workflows rules

race: ## Test what shares memory under the race detector
	$(CHECK) race

generate: ## Write schemas and pages from the Go types
	go run ./cmd/reconcile/internal/tools/gen

verify: ## Check that generated files and go.mod are up to date
	$(CHECK) generated modules

bench: ## Measure speed and memory beside what they are compared with
	go run ./cmd/reconcile/internal/tools/bench run

bench-tree: ## Generate a tree of N=10000 objects in DIR=dist/tree
	go run ./cmd/reconcile/internal/tools/bench tree -n $(N) $(DIR)

cover: ## Write the coverage of the tests to dist/cover.html
	@mkdir -p dist
	go test -coverpkg=./... -coverprofile=dist/cover.out ./...
	go tool cover -html=dist/cover.out -o dist/cover.html

clean: ## Remove what the other targets made
	rm -rf bin dist

release: ## Build binaries, archives, packages, SBOMs and checksums of VERSION for every platform in dist/
	cd cmd/reconcile/internal/tools/release && go run . -version "$(VERSION)" -out "$(CURDIR)/dist"

container: ## Build the container image reconcile:VERSION with the builder that is here
	$(CHECK) container
