import RedisEngine
import TestSupport
import Testing

@Suite("Order of the commands of a slot")
struct RedisSlotQueueTests {
    private final class Command {
        let name: String

        init(_ name: String) { self.name = name }
    }

    /// A queue, and what it told its owner to do.
    private final class Scene {
        private var queue = RedisSlotQueue<Command>()
        private var commands: [String: Command] = [:]
        private(set) var actions: [String] = []

        var isEmpty: Bool { self.queue.isEmpty }
        var held: [String] { self.queue.heldCommands.map(\.name) }
        var isHolding: Bool { self.queue.isHolding }

        /// - Parameter names: letters, a command each.
        func add(_ names: String) {
            for name in names.map(String.init) {
                let command = Command(name)
                self.commands[name] = command
                if self.queue.add(command) { self.actions.append("send \(name)") }
            }
        }

        func answer(_ names: String) {
            for name in names.map(String.init) {
                guard let command = self.commands.removeValue(forKey: name) else { continue }
                self.record(self.queue.answered(command))
            }
        }

        func returnAll(_ names: String, after pause: Duration? = nil, isAlone: Bool = false) {
            for command in names.compactMap({ self.commands[String($0)] }) {
                self.record(self.queue.returned(command, after: pause, isAlone: isAlone))
            }
        }

        func endPause() { self.record(self.queue.pauseOver()) }

        private func record(_ action: RedisSlotQueue<Command>.Action) {
            switch action {
            case .send(let commands): self.actions.append("send \(commands.map(\.name).joined())")
            case .pause(let command, let pause): self.actions.append("pause \(command.name) \(pause)")
            case .none: break
            }
        }

        func takeActions() -> [String] {
            defer { self.actions = [] }
            return self.actions
        }
    }

    @Test func commandsAreSentAsTheyCome() {
        let scene = Scene()
        scene.add("abc")
        scene.answer("a")
        scene.add("d")
        #expect(scene.takeActions() == ["send a", "send b", "send c", "send d"])
        scene.answer("bcd")
        #expect(scene.isEmpty && !scene.isHolding && scene.actions.isEmpty)
    }

    @Test func commandsAfterAReturnedOneFollowItsAnswer() {
        let scene = Scene()
        scene.add("abc")
        _ = scene.takeActions()
        scene.returnAll("a")
        #expect(scene.takeActions() == ["send a"])
        scene.returnAll("bc")
        scene.add("d")
        #expect(scene.takeActions() == [] && scene.held == ["b", "c", "d"])
        scene.answer("a")
        #expect(scene.takeActions() == ["send bcd"] && !scene.isHolding)
        scene.add("e")
        scene.answer("bcde")
        #expect(scene.takeActions() == ["send e"] && scene.isEmpty)
    }

    @Test func laterCommandsWaitForThoseThatWereOnTheirWay() {
        let scene = Scene()
        scene.add("abc")
        scene.returnAll("a")
        scene.add("d")
        scene.answer("a")
        // The others are still on their way to the server that returned the first.
        #expect(scene.takeActions() == ["send a", "send b", "send c", "send a"])
        scene.answer("b")
        scene.returnAll("c")
        #expect(scene.takeActions() == ["send c"])
        scene.answer("c")
        #expect(scene.takeActions() == ["send d"])
        scene.answer("d")
        #expect(scene.isEmpty)
    }

    @Test func nothingIsSentBeforeAnEarlierCommandHasItsAnswer() {
        let scene = Scene()
        scene.add("ab")
        _ = scene.takeActions()
        scene.returnAll("b", after: .seconds(1))
        scene.add("c")
        #expect(scene.takeActions() == [] && scene.held == ["b", "c"])
        scene.returnAll("a")
        #expect(scene.takeActions() == ["send a"])
        scene.answer("a")
        // An earlier command was executed meanwhile: the pause is over.
        #expect(scene.takeActions() == ["send bc"])
    }

    @Test func firstCommandPausesForAll() {
        let scene = Scene()
        scene.add("abc")
        scene.returnAll("abc", after: .seconds(1))
        scene.add("d")
        #expect(scene.takeActions() == ["send a", "send b", "send c", "pause a 1.0 seconds"])
        scene.endPause()
        scene.returnAll("a", after: .seconds(2))
        scene.endPause()
        scene.answer("a")
        #expect(scene.takeActions() == ["send a", "pause a 2.0 seconds", "send a", "send bcd"])
        scene.endPause()
        #expect(scene.takeActions() == [])
    }

    @Test func commandForAnotherServerIsSentAlone() {
        let scene = Scene()
        scene.add("abcd")
        _ = scene.takeActions()
        scene.returnAll("a")
        scene.returnAll("bd")
        scene.returnAll("c", isAlone: true)
        scene.answer("a")
        #expect(scene.takeActions() == ["send a", "send b"])
        scene.add("e")
        scene.answer("b")
        #expect(scene.takeActions() == ["send c"])
        scene.answer("c")
        #expect(scene.takeActions() == ["send de"])
    }

    @Test func commandThatFollowedMayReturnToo() {
        let scene = Scene()
        scene.add("abc")
        scene.returnAll("abc")
        scene.answer("a")
        _ = scene.takeActions()
        scene.returnAll("bc", after: .seconds(1))
        scene.add("d")
        #expect(scene.takeActions() == ["pause b 1.0 seconds"] && scene.held == ["b", "c", "d"])
    }

    /// Two servers, each of which answers in the order in which it gets commands. A slot moves back and forth between them.
    private struct Servers {
        private var queue = RedisSlotQueue<Command>()
        private var waiting: [[Command]] = [[], []]
        private var owner = 0
        /// The server that the client knows as the owner.
        private var known = 0
        private var moves = 0
        private var added = 0
        private var isPausing = false
        private(set) var executed: [Int] = []

        var isOver: Bool { self.queue.isEmpty && !self.queue.isHolding }

        mutating func step(limit: Int, using generator: inout SeededGenerator) {
            switch Int.random(in: 0..<6, using: &generator) {
            case 0 where self.added < limit:
                let command = Command("\(self.added)")
                self.added += 1
                if self.queue.add(command) { self.waiting[self.known].append(command) }
            case 1 where self.moves < 8 && self.waiting[1 - self.owner].isEmpty:
                // What is on its way to the next owner already would overtake, with Redis as well.
                self.owner = 1 - self.owner
                self.moves += 1
            case 2 where self.isPausing:
                self.isPausing = false
                self.perform(self.queue.pauseOver())
            case let number where number >= 4 && !self.waiting[number - 4].isEmpty:
                self.handleNext(by: number - 4, using: &generator)
            default: break
            }
        }

        private mutating func handleNext(by server: Int, using generator: inout SeededGenerator) {
            let command = self.waiting[server].removeFirst()
            if server == self.owner {
                self.executed.append(Int(command.name) ?? -1)
                return self.perform(self.queue.answered(command))
            }
            self.known = self.owner
            let pause: Duration? = Bool.random(using: &generator) ? .seconds(1) : nil
            self.perform(self.queue.returned(command, after: pause, isAlone: Bool.random(using: &generator)))
        }

        private mutating func perform(_ action: RedisSlotQueue<Command>.Action) {
            switch action {
            case .send(let commands): self.waiting[self.known] += commands
            case .pause: self.isPausing = true
            case .none: break
            }
        }
    }

    @Test(arguments: 1...200)
    func serversExecuteAllCommandsInTheirOrder(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var servers = Servers()
        for _ in 0..<100_000 where servers.executed.count < 100 { servers.step(limit: 100, using: &generator) }
        #expect(servers.executed == Array(0..<100))
        #expect(servers.isOver)
    }
}
