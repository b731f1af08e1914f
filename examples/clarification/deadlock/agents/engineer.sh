cat > /dev/null
echo "The load test of last week: 900 requests a second on one node."
