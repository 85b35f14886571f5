/// Keeps a connection's `OutputStall` apart, so that one that never stalls pays eight bytes for it.
final class OutputStallBox {
    var value = OutputStall()
}
