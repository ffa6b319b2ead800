"""The pages of the documentation: what is typed in them is typed again, and the outputs are
compared.

A page is Markdown.  What its code blocks are, and how they are checked:

console   commands after `$ `, then their output; run one after the other, with a server if one is
          started there
python    lines after `>>> `, then their output; without prompts a program, which is run
sql       statements, run in an engine of the page; of pages that name a script
          (`<!-- script: FILE -->`): stand in it
sql error fails line by line with the code that is quoted
toml      a configuration of the server
text      syntax, pictures, and outputs without a command
sh, ini   can't be run in a test, and so says `<!-- not run: REASON -->` in the line before;
          commands are checked against `--help`.  A console, python or sql block may say the same.

`...` in an output stands for anything within the line, a line of its own for any lines.

    python -m tests.pages [PAGE ...]      writes down what comes back
"""
