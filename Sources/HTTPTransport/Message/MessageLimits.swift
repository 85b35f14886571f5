/// How much a server may send that is not content. What is above a limit is refused.
package struct MessageLimits: Sendable, Hashable {
    /// Largest head, status line and fields together; also of the trailers. In bytes.
    package var headBytes = 256 << 10
    /// Most fields of one message, trailers included.
    package var fieldCount = 512
    /// Most informational heads before the final one.
    package var informationalHeads = 32
    /// Most bytes of chunk sizes, extensions and trailers in a row.
    package var framingBytes = 512 << 10

    package init() {}
}
