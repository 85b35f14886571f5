import ByteKernels
import GatewayConfiguration
import GatewayCore
import SessionTasks
import SimulatedNetwork
import StreamTransport
import TestSupport
import Testing

@Suite("Chat rooms")
struct ChatRoomTests {
    private static let messageSize = 16 << 10
    /// 8 MiB: much more than every buffer on the way, the channel between two loops included.
    private static let floodCount = 512

    /// Numbered messages, encoded once.
    private func flood(_ peer: RawWebSocketPeer, _ count: Int = Self.floodCount, size: Int = Self.messageSize) {
        let filling = [UInt8](repeating: 0x61, count: size - 4)
        var bytes: [UInt8] = []
        for number in 0..<count {
            let digits = (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
            bytes += Self.head(size) + digits + filling
        }
        peer.peer.send(bytes)
    }

    /// A binary frame's head whose masking key changes nothing.
    private static func head(_ count: Int) -> [UInt8] {
        let length = count < 126 ? [UInt8(0x80 | count)] : [0xFE, UInt8(count >> 8), UInt8(count & 0xFF)]
        return [0x82] + length + [0, 0, 0, 0]
    }

    /// On the wire, towards a client.
    private static func floodBytes(_ count: Int = floodCount) -> Int {
        count * (Self.messageSize + 4)
    }

    /// Exactly these messages, in order, came to a client.
    private func expectFlood(
        _ peer: RawWebSocketPeer, _ count: Int = Self.floodCount, sourceLocation: SourceLocation = #_sourceLocation
    ) {
        let bytes = peer.leftover + peer.peer.received
        #expect(bytes.count == Self.floodBytes(count), sourceLocation: sourceLocation)
        guard bytes.count >= Self.floodBytes(count) else { return }
        let wrong = (0..<count).first { number in
            let start = number * (Self.messageSize + 4)
            let head: [UInt8] = [0x82, 126, UInt8(Self.messageSize >> 8), UInt8(Self.messageSize & 0xFF)]
            let digits = (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
            return Array(bytes[start..<(start + 8)]) != head + digits
        }
        #expect(wrong == nil, sourceLocation: sourceLocation)
    }

    private func hears(_ peer: RawWebSocketPeer, _ bytes: Int) -> Bool {
        peer.peer.received.count + peer.leftover.count >= bytes
    }

    @Test func refusedNameOfARoomLeavesNoConnection() throws {
        let scene = try GatewayScene(
            """
            listeners: [{name: web, listen: "ws://10.1.0.1:1001"}]
            routes: [{name: chat, path: "/chat/{room}", target: chat}]
            """)
        for (name, status) in [(String(repeating: "x", count: 256), "414"), ("line%0Abreak", "400")] {
            let client = try scene.webSocketClient(1001, "/chat/\(name)")
            #expect(scene.head(client)?.hasPrefix("HTTP/1.1 \(status) ") == true)
        }
        scene.settle()
        #expect(scene.gateway.endings.count == 2)
        scene.finish()
    }

    @Test func messagesReachTheOtherMembersOnAllLoopsInOrder() throws {
        let chat = try ChatScene()
        let speaker = try chat.client(on: 0)
        let near = try chat.client(on: 0)
        let far = try chat.client(on: 1)
        let stranger = try chat.client(on: 1, "/chat/y")
        self.flood(speaker, 64)
        #expect(chat.run { self.hears(near, Self.floodBytes(64)) && self.hears(far, Self.floodBytes(64)) })
        chat.scene.settle()
        self.expectFlood(near, 64)
        self.expectFlood(far, 64)
        #expect(speaker.frames.isEmpty && stranger.frames.isEmpty)
        far.send(1, "thanks")
        #expect(chat.run { speaker.frames.count == 1 && near.frames.last?.payload == Array("thanks".utf8) })
        chat.scene.finish()
    }

    /// Messages that come together are framed together, but nobody gets his own.
    @Test(arguments: [1 as UInt64, 2, 3])
    func speakersAmongEachOtherGetAllMessagesButTheirOwn(_ seed: UInt64) throws {
        let chat = try ChatScene(seed: seed, receiveBuffer: 1 << 20)
        let speakers = try (0..<5).map { try chat.client(on: $0 == 4 ? 1 : 0) }
        for number in 0..<20 {
            for (index, speaker) in speakers.enumerated() { speaker.send(1, "\(index) \(number)") }
        }
        #expect(chat.run { speakers.allSatisfy { $0.frames.count == 80 } })
        chat.scene.settle()
        for (index, speaker) in speakers.enumerated() {
            let texts = speaker.frames.map { String(decoding: $0.payload, as: UTF8.self) }
            for other in speakers.indices {
                let expected = other == index ? [] : (0..<20).map { "\(other) \($0)" }
                #expect(texts.filter { $0.hasPrefix("\(other) ") } == expected)
            }
        }
        chat.scene.finish()
    }

    @Test func memberThatEntersLaterGetsNothingFromBefore() throws {
        let chat = try ChatScene(receiveBuffer: 1 << 20)
        let speaker = try chat.client(on: 0)
        let early = try chat.client(on: 1)
        chat.gateway.stalled.insert(1)
        self.flood(speaker, 8)
        chat.runFor(.seconds(1))
        chat.gateway.stalled.remove(1)
        #expect(chat.run { self.hears(early, Self.floodBytes(8)) })
        self.expectFlood(early, 8)
        let late = try chat.client(on: 1)
        speaker.send(1, "welcome")
        #expect(chat.run { late.frames.count == 1 && early.frames.last?.payload == Array("welcome".utf8) })
        #expect(late.frames.first?.payload == Array("welcome".utf8))
        chat.scene.finish()
    }

    @Test(arguments: [1 as UInt64, 2, 3])
    func speakerIsPausedWhileAnotherLoopLagsBehind(_ seed: UInt64) throws {
        let chat = try ChatScene(seed: seed, receiveBuffer: 1 << 20)
        let speaker = try chat.client(on: 0)
        let near = try chat.client(on: 0)
        let far = try chat.client(on: 1)
        chat.gateway.stalled.insert(1)
        self.flood(speaker)
        chat.runFor(.seconds(1))
        #expect(speaker.peer.unsentBytes > 4 << 20)
        #expect(chat.gateway.shared.hub.bytesUnderWay <= 3 << 20)
        #expect(chat.gateway.parts[0].clients(ofRoute: "chat").first?.task.record.isStalled == true)
        chat.gateway.stalled.remove(1)
        let whole = Self.floodBytes()
        #expect(chat.run { self.hears(near, whole) && self.hears(far, whole) })
        chat.scene.settle()
        self.expectFlood(near)
        self.expectFlood(far)
        chat.scene.finish()
    }

    /// Nothing is read before a member has entered. That it has does not mean that the room takes more.
    @Test func memberThatEntersWhileAnotherLoopLagsBehindIsPausedAtOnce() throws {
        let chat = try ChatScene(receiveBuffer: 1 << 20)
        let speaker = try chat.client(on: 0)
        _ = try chat.client(on: 1)
        let late = try chat.connection(on: 0)
        chat.gateway.stalled.insert(1)
        self.flood(speaker)
        chat.runFor(.seconds(1))
        late.peer.send(RawWebSocketPeer.request(to: "/chat/x"))
        _ = try #require(chat.scene.head(late))
        self.flood(late)
        chat.runFor(.seconds(1))
        #expect(late.peer.unsentBytes > 4 << 20)
        #expect(chat.gateway.shared.hub.bytesUnderWay <= 3 << 20)
        chat.gateway.stalled.remove(1)
        // The member of the other loop may be too slow for both.
        #expect(chat.run { self.hears(speaker, Self.floodBytes()) })
        chat.scene.finish()
    }

    @Test func roomContinuesWhenAPausedSenderLeaves() throws {
        let chat = try ChatScene()
        let speaker = try chat.client(on: 0)
        let other = try chat.client(on: 0)
        let far = try chat.client(on: 1)
        chat.gateway.stalled.insert(1)
        self.flood(speaker)
        chat.runFor(.seconds(1))
        speaker.peer.reset()
        chat.runFor(.seconds(1))
        #expect(chat.gateway.endings.count > 0 && chat.gateway.parts[0].clients(ofRoute: "chat").count == 1)
        chat.gateway.stalled.remove(1)
        other.send(1, "still here")
        #expect(chat.run { far.frames.last?.payload == Array("still here".utf8) })
        chat.scene.finish()
    }

    @Test func membersReceiveMessagesSentBeforeAClose() throws {
        let chat = try ChatScene(receiveBuffer: 1 << 20)
        let speaker = try chat.client(on: 0)
        let far = try chat.client(on: 1)
        chat.gateway.stalled.insert(1)
        self.flood(speaker)
        speaker.send(8, [0x03, 0xE8])
        chat.runFor(.seconds(1))
        #expect(speaker.peer.received.isEmpty)
        chat.gateway.stalled.remove(1)
        #expect(chat.run { self.hears(far, Self.floodBytes()) && speaker.close == [0x03, 0xE8] })
        self.expectFlood(far)
        chat.scene.finish()
    }

    @Test func messagesForMembersThatLeftAreDropped() throws {
        let chat = try ChatScene()
        let speaker = try chat.client(on: 0)
        let near = try chat.client(on: 0)
        let far = try chat.client(on: 1)
        chat.gateway.stalled.insert(1)
        self.flood(speaker)
        chat.runFor(.seconds(1))
        far.peer.reset()
        chat.gateway.stalled.remove(1)
        #expect(chat.run { self.hears(near, Self.floodBytes()) })
        self.expectFlood(near)
        #expect(chat.gateway.shared.hub.bytesUnderWay == 0)
        // A member that joins now does not receive it.
        let late = try chat.client(on: 1)
        speaker.send(1, "hello")
        #expect(chat.run { !late.frames.isEmpty })
        #expect(late.frames.map(\.payload) == [Array("hello".utf8)])
        chat.scene.finish()
    }

    @Test func suspendedSpeakerIsNotReadUntilItIsResumed() throws {
        let chat = try ChatScene()
        let near = try chat.client(on: 0)
        let far = try chat.client(on: 1)
        let speaker = try chat.client(on: 0)
        guard case .webSocket(let task) = try chat.task(on: 0) else {
            Issue.record("no WebSocket")
            return
        }
        chat.gateway.stalled.insert(1)
        self.flood(speaker)
        chat.runFor(.seconds(1))
        chat.gateway.perform { _ in task.suspendOnLoop() }
        chat.gateway.stalled.remove(1)
        chat.runFor(.seconds(1))
        #expect(speaker.peer.unsentBytes > 2 << 20 && !self.hears(far, Self.floodBytes()))
        chat.gateway.perform { _ in task.resumeOnLoop() }
        #expect(chat.run { self.hears(far, Self.floodBytes()) })
        chat.scene.settle()
        self.expectFlood(near)
        self.expectFlood(far)
        chat.scene.finish()
    }

    @Test func drainEndsWhileASpeakerIsPaused() throws {
        let chat = try ChatScene()
        let speaker = try chat.client(on: 0)
        let far = try chat.client(on: 1)
        chat.gateway.stalled.insert(1)
        self.flood(speaker)
        chat.runFor(.seconds(1))
        var empty = 0
        var settings = DrainSettings()
        settings.timeout = .seconds(5)
        // Close all at once: otherwise the flood continues while others wait, and each of its turns is simulated.
        settings.closeSpread = .zero
        chat.gateway.drain(settings) { empty += 1 }
        chat.runFor(.seconds(1))
        chat.gateway.stalled.remove(1)
        #expect(chat.run { far.close == [0x03, 0xE9] })
        #expect(chat.scene.run(atMost: .seconds(30)) { empty == 2 })
        #expect(chat.gateway.liveCount == 0)
        chat.scene.finish()
    }

    // MARK: Members that do not read

    @Test func onlyTheMemberThatLagsTooFarIsClosed() throws {
        let chat = try ChatScene()
        let speaker = try chat.client(on: 0)
        let reader = try chat.client(on: 1)
        let stalled = try chat.client(on: 1)
        stalled.peer.isReading = false
        self.flood(speaker)
        #expect(chat.run { self.hears(reader, Self.floodBytes()) })
        self.expectFlood(reader)
        stalled.peer.isReading = true
        #expect(chat.run { stalled.close != nil })
        #expect(stalled.close.map { Array($0.prefix(2)) } == [0x03, 0xF5])
        chat.scene.finish()
    }

    /// Messages that the member did not get are no longer on their way, so that nobody waits for it.
    @Test(arguments: [1 as UInt64, 2, 3])
    func speakerIsReadAfterTheOnlyMemberOfAnotherLoopWasClosed(_ seed: UInt64) throws {
        let chat = try ChatScene(seed: seed)
        let speaker = try chat.client(on: 0)
        let stalled = try chat.client(on: 1)
        stalled.peer.isReading = false
        self.flood(speaker)
        #expect(chat.run { speaker.peer.unsentBytes == 0 })
        chat.scene.settle()
        #expect(chat.gateway.shared.hub.bytesUnderWay == 0)
        let late = try chat.client(on: 1)
        speaker.send(1, "hello")
        #expect(chat.run { late.frames.last?.payload == Array("hello".utf8) })
        chat.scene.finish()
    }

    @Test func pendingMessageIsStoredOnceForAllSlowMembers() throws {
        let chat = try ChatScene(loops: 1)
        let speaker = try chat.client(on: 0)
        let slow = try (0..<12).map { _ in try chat.client(on: 0) }
        for member in slow { member.peer.isReading = false }
        // 3 MiB wait for each.
        self.flood(speaker, 220)
        chat.runFor(.seconds(1))
        #expect(speaker.peer.unsentBytes == 0)
        let tasks = chat.gateway.parts[0].clients(ofRoute: "chat").dropFirst()
        for case .webSocket(let task) in tasks {
            #expect(task.queuedBytes < 128 << 10)
            #expect(task.queuedBytes + task.waitingBytes > 2 << 20)
        }
        for member in slow { member.peer.isReading = true }
        #expect(chat.run { slow.allSatisfy { self.hears($0, Self.floodBytes(220)) } })
        for member in slow { self.expectFlood(member, 220) }
        chat.scene.finish()
    }

    @Test func bytesOfAllRoomsOfALoopAreBounded() throws {
        let chat = try ChatScene(loops: 1, backlog: 4 << 20)
        var closed = 0
        for room in 0..<4 {
            let speaker = try chat.client(on: 0, "/chat/\(room)")
            let stalled = try chat.client(on: 0, "/chat/\(room)")
            stalled.peer.isReading = false
            // 2.5 MiB wait for it, where that is not too much.
            self.flood(speaker, 190)
            chat.runFor(.seconds(1))
            #expect(speaker.peer.unsentBytes == 0)
            guard case .webSocket(let task) = try chat.task(on: 0) else { continue }
            closed += task.stage == .open ? 0 : 1
            #expect(task.stage == .open || task.waitingBytes == 0)
        }
        #expect(closed >= 2)
        let kept = chat.gateway.parts[0].clients(ofRoute: "chat").reduce(0) { sum, endpoint in
            guard case .webSocket(let task) = endpoint else { return sum }
            return sum + task.waitingBytes
        }
        #expect(kept < 6 << 20)
        chat.scene.finish()
    }

    /// Empty messages take memory too.
    @Test func emptyMessagesCountAsBacklog() throws {
        let chat = try ChatScene(loops: 1)
        let speaker = try chat.client(on: 0)
        let stalled = try chat.client(on: 0)
        stalled.peer.isReading = false
        let frames = (0..<10_000).flatMap { _ in Self.head(0) }
        var rounds = 0
        while chat.gateway.parts[0].clients(ofRoute: "chat").count == 2, rounds < 60 {
            speaker.peer.send(frames)
            #expect(chat.run { speaker.peer.unsentBytes == 0 })
            chat.runFor(.milliseconds(10))
            rounds += 1
            guard case .webSocket(let task) = try chat.task(on: 0) else { break }
            if task.stage != .open { break }
        }
        // Its buffers hold 230 000; another 4 MiB of messages are too many.
        #expect(rounds < 60)
        chat.scene.finish()
    }

    // MARK: Turns

    @Test func roomGivesItsMembersNoMoreThanATurnsShare() throws {
        let chat = try ChatScene(loops: 1)
        let speaker = try chat.client(on: 0)
        let members = try (0..<11).map { _ in try chat.client(on: 0) }
        let count = 10_000
        speaker.peer.send((0..<count).flatMap { _ in Self.head(1) + [0x61] })
        var before: UInt64 = 0
        var most: UInt64 = 0
        #expect(
            chat.run {
                let now = chat.sentMessages(on: 0)
                most = max(most, now - before)
                before = now
                return now == UInt64(count * members.count)
            })
        // 4 calls of 128 messages to each member: 256 KiB with the messages' overhead, the most that a room takes before all
        // members that are ready have it.
        #expect(most <= 4 * 128 * 11)
        #expect(chat.run { members.allSatisfy { self.hears($0, 3 * count) } })
        chat.scene.finish()
    }

    @Test func neighbourAndNewClientAreAnsweredDuringAFlood() throws {
        // A turn with a whole share of work takes about so long.
        let chat = try ChatScene(loops: 1, turn: .milliseconds(1))
        let speaker = try chat.client(on: 0)
        let members = try (0..<11).map { _ in try chat.client(on: 0) }
        let echo = try chat.client(on: 0, "/echo")
        let count = 30_000
        speaker.peer.send((0..<count).flatMap { _ in Self.head(1) + [0x61] })
        #expect(chat.run { self.hears(members[0], 100) })
        let before = chat.scene.network.now
        echo.send(1, "ping")
        #expect(chat.run { !echo.frames.isEmpty })
        #expect(before.duration(to: chat.scene.network.now) < .milliseconds(20))
        _ = try chat.client(on: 0, "/echo")
        #expect(before.duration(to: chat.scene.network.now) < .milliseconds(60))
        #expect(!members.contains { self.hears($0, 3 * count) })
        #expect(chat.run { members.allSatisfy { self.hears($0, 3 * count) } })
        chat.scene.finish()
    }

    // MARK: Streams

    @Test func streamIsPausedWhileAnotherLoopLagsBehind() throws {
        let chat = try ChatScene()
        let speaker = try chat.stream(on: 0)
        let far = try chat.stream(on: 1)
        let web = try chat.client(on: 0, "/chat/lobby")
        chat.gateway.stalled.insert(1)
        let line = [UInt8](repeating: 0x61, count: Self.messageSize - 1) + [0x0A]
        let whole = [UInt8]((0..<Self.floodCount).map { _ in line }.joined())
        speaker.send(whole)
        speaker.finish()
        chat.runFor(.seconds(1))
        #expect(speaker.unsentBytes > 4 << 20)
        chat.gateway.stalled.remove(1)
        #expect(chat.run { far.received.count == whole.count && self.hears(web, whole.count) && speaker.sawEnd })
        #expect(far.received == whole)
        chat.scene.finish()
    }

    @Test func streamThatLagsTooFarIsReset() throws {
        let chat = try ChatScene()
        let speaker = try chat.client(on: 0, "/chat/lobby")
        let reader = try chat.client(on: 1, "/chat/lobby")
        let stalled = try chat.stream(on: 1)
        stalled.isReading = false
        self.flood(speaker)
        #expect(chat.run { self.hears(reader, Self.floodBytes()) && stalled.isClosed })
        #expect(stalled.failure == .reset)
        chat.scene.finish()
    }

    /// The operator's suspension and the room's pause must not undo each other.
    @Test func suspendedStreamIsNotReadUntilTheRoomHasSpace() throws {
        let chat = try ChatScene()
        let far = try chat.stream(on: 1)
        let speaker = try chat.stream(on: 0)
        guard case .stream(let task) = try chat.task(on: 0, route: "lobby") else {
            Issue.record("no stream")
            return
        }
        let line = [UInt8](repeating: 0x61, count: Self.messageSize - 1) + [0x0A]
        let whole = [UInt8]((0..<Self.floodCount).map { _ in line }.joined())
        chat.gateway.stalled.insert(1)
        speaker.send(whole)
        chat.runFor(.seconds(1))
        chat.gateway.perform { _ in task.suspendOnLoop() }
        let read = task.record.bytesReceived
        chat.gateway.perform { _ in task.resumeOnLoop() }
        chat.runFor(.seconds(1))
        #expect(task.record.bytesReceived == read)
        chat.gateway.stalled.remove(1)
        #expect(chat.run { far.received.count == whole.count })
        chat.scene.finish()
    }
}
