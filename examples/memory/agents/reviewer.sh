# A reviewer that begins days later and knows nothing of the engineer. What it is told is kept, so that one can look.
cat > reviewer-was-told.txt
echo 'The export reads the file of each issue.'
