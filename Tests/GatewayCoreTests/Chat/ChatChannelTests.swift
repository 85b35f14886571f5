import GatewayCore
import Testing
import WebSocketProtocol

@Suite("Chat messages on their way to another loop")
struct ChatChannelTests {
    private static func messages(_ count: Int, of bytes: Int = 1) -> [ChatMessage] {
        (0..<count).map { ChatMessage(kind: .binary, bytes: [UInt8](repeating: UInt8($0 & 0xFF), count: bytes)) }
    }

    @Test func messagesAreTakenInOrderWithTheirRooms() {
        let channel = ChatChannel()
        _ = channel.add(Self.messages(3), room: "a")
        _ = channel.add(Self.messages(2), room: "b")
        var taken: [String] = []
        while true {
            let part = channel.take(upTo: 1)
            taken += part.messages.map { "\($0.room)\($0.message.bytes[0])" }
            guard part.hasMore else { break }
        }
        #expect(taken == ["a0", "a1", "a2", "b0", "b1"] && channel.cost == 0)
    }

    /// Else each message would be one more piece of work for the other loop.
    @Test func receiverIsNotifiedOnceUntilAllIsTaken() {
        let channel = ChatChannel()
        #expect(channel.add(Self.messages(2), room: "a").notifiesReceiver)
        #expect(!channel.add(Self.messages(1), room: "a").notifiesReceiver)
        #expect(channel.take(upTo: 1).hasMore)
        #expect(!channel.add(Self.messages(1), room: "a").notifiesReceiver)
        #expect(!channel.take(upTo: .max).hasMore)
        #expect(channel.add(Self.messages(1), room: "a").notifiesReceiver)
    }

    @Test(arguments: [0, 1, 1000, 100_000])
    func channelIsFullByBytesOrByNumberOfMessages(_ bytes: Int) throws {
        let channel = ChatChannel()
        var count = 0
        while !channel.add(Self.messages(1, of: bytes), room: "a").isFull { count += 1 }
        let limit = ChatChannel.highWatermark
        #expect(count * bytes < limit && count <= limit / 64)
        #expect(channel.cost >= limit && channel.cost < limit + 2 * (bytes + 1000))
    }

    @Test func senderResumesWhenHalfTheMembersHaveRead() {
        let channel = ChatChannel()
        #expect(!channel.add(Self.messages(1, of: 1000), room: "a").isFull)
        #expect(!channel.take(upTo: .max).wakesSender)
        while !channel.add(Self.messages(1, of: 1000), room: "a").isFull {}
        var wakes = 0
        while channel.cost > 0 {
            let before = channel.cost
            guard channel.take(upTo: 1000).wakesSender else { continue }
            wakes += 1
            #expect(before > ChatChannel.lowWatermark && channel.cost <= ChatChannel.lowWatermark)
        }
        #expect(wakes == 1)
    }
}
