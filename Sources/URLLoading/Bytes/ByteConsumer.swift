/// The reader's side of a channel before anybody reads: when it goes away unread, the channel is abandoned.
package final class ByteConsumer: Sendable {
    let channel: ByteChannel

    package init(_ channel: ByteChannel) {
        self.channel = channel
    }

    deinit {
        self.channel.abandon()
    }
}
