# An engineer that builds the store and says what came of it. A real one is a coding agent: the task comes on stdin, and
# what it says last is on stdout. The headings are what its summary has anyway; each bullet becomes an observation.
cat > engineer-was-told.txt
mkdir -p src
echo 'export const files = (issue) => `memory/issue-${issue}.json`' > src/store.ts
cat <<'SUMMARY'
The observation store is built.

## Decisions
- Chose one JSON file for each issue over SQLite for the observation store in src/store.ts: no dependency, and a lock for
  each issue.

## Errors Encountered
- Two writers of manifest.json lost entries until the lock of the issue file was taken first.

## Key Facts
- Deploys go out with the key AKIAZ7QW3LX5T2KD9PHM, which is in the vault. <private>Ada is on leave until May.</private>
SUMMARY
