import sys
sys.argv = ['.fz.py', '60', '21', 'all', 'per']
src = open('.fz.py').read()
import dsms.running.promised as pr
if MODE == 'nofollow':
    pr._go_by = lambda *a: None
exec(compile(src, 'fz', 'exec'))
