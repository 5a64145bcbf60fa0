import sys
from tree_sitter_language_pack import get_parser

for path in sys.argv[1:]:
    parser = get_parser({"kt": "kotlin", "dart": "dart"}[path.rpartition(".")[2]])
    if parser.parse(open(path, "rb").read()).root_node.has_error:
        sys.exit(path + " has an error of syntax")
