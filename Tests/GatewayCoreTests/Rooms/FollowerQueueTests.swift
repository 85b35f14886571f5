import GatewayCore
import Rooms
import Synchronization
import Testing

@Suite("Queue of a room follower")
struct FollowerQueueTests {
    /// A queue, and how often its member was told that it takes more.
    private final class Scene: Sendable {
        private final class Counter: Sendable {
            let value = Atomic<Int>(0)
        }

        let queue = FollowerQueue()
        private let progress = Counter()

        init() {
            let member = FollowerQueue.Member(
                progressed: { [progress] in progress.value.add(1, ordering: .relaxed) }, stopped: {})
            self.queue.begin(member)
        }

        var progressCount: Int { self.progress.value.load(ordering: .relaxed) }

        func fill() {
            let data = [UInt8](repeating: 0x61, count: 64 << 10)
            while self.queue.takesMore { self.queue.add(.publication(Publication(.binary(data)), epoch: "")) }
        }
    }

    @Test func memberIsCalledWhenTheReaderTakesEvents() async {
        let scene = Scene()
        scene.fill()
        scene.queue.awaitProgress()
        #expect(scene.progressCount == 0)
        #expect(await scene.queue.next()?.isEmpty == false)
        #expect(scene.progressCount == 1 && scene.queue.takesMore)
    }

    /// The reader's thread is not the member's.
    @Test func memberIsCalledAlthoughTheReaderTookTheEventsBeforeItAsked() async {
        let scene = Scene()
        scene.fill()
        #expect(await scene.queue.next()?.isEmpty == false)
        scene.queue.awaitProgress()
        #expect(scene.progressCount == 1)
    }
}
