cat > /dev/null
echo "Two regions are promised to nobody; one is enough for the launch."
