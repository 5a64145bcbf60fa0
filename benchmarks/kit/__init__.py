"""What every case of the benchmarks needs: processes, servers, load, pictures, and the report."""
