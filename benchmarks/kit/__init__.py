"""What every case of the benchmarks needs: processes, servers, load, images, and the report."""
