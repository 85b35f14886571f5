import ControlPlane
import Testing

@Suite("State of a drain")
struct DrainStateTests {
    /// The state after each request; `nil` where it is refused.
    @Test(
        arguments: [
            (.running, pause: .paused, resume: nil, cancel: .cancelled, finish: .ended),
            (.paused, pause: nil, resume: .running, cancel: .cancelled, finish: .ended),
            (.cancelled, pause: nil, resume: nil, cancel: nil, finish: .cancelled),
            (.ended, pause: nil, resume: nil, cancel: nil, finish: .ended),
        ] as [(DrainState, pause: DrainState?, resume: DrainState?, cancel: DrainState?, finish: DrainState)])
    func drainStateAnswersEveryRequestInEveryState(
        _ before: DrainState, pause: DrainState?, resume: DrainState?, cancel: DrainState?, finish: DrainState
    ) {
        let requests: [(DrainState?, (inout DrainState) -> Bool)] = [
            (pause, { $0.pause() }), (resume, { $0.resume() }), (cancel, { $0.cancel() }),
        ]
        for (after, request) in requests {
            var state = before
            #expect(request(&state) == (after != nil))
            #expect(state == after ?? before)
        }
        var state = before
        state.finish()
        #expect(state == finish)
        #expect(state.isOver)
    }
}
