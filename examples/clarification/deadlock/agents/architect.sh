cat > /dev/null
echo "One region, and a read replica in the second half of the year."
