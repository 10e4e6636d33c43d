"""`python -m subword_nb` is `subword-nb`."""
from subword_nb.cli.main import main

if __name__ == "__main__":
    main()
