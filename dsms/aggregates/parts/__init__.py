"""What families are made of: words, limbs, trees and lists, the cells of synopses, and DISTINCT."""
