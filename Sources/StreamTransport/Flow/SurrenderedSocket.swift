/// A connection taken off its loop: the receiver now owns the descriptor.
package struct SurrenderedSocket: Sendable {
    package let descriptor: Descriptor
    /// Read from the descriptor already, and the first thing the new owner must look at.
    package let unread: [UInt8]

    package init(descriptor: Descriptor, unread: [UInt8]) {
        self.descriptor = descriptor
        self.unread = unread
    }
}
