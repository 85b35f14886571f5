import Testing
import URLLoading
import StreamTransport

@Suite("The state of a transfer")
struct TransferMachineTests {
    typealias Machine = TransferMachine<Int>

    static let start = ContinuousInstant.now
    static let later = Self.start + .seconds(30)

    /// How a machine is brought into each of its states.
    enum Stage: CaseIterable {
        case waiting, loading, deciding, decidingFinished, decidingDetached, becomingStream, finishing, ended

        func machine() -> Machine {
            var machine = Machine(timeout: .seconds(100))
            if self == .waiting { return machine }
            _ = machine.resumed(now: TransferMachineTests.start)
            switch self {
            case .waiting, .loading: break
            case .deciding: machine.dispositionRequested()
            case .decidingFinished:
                machine.dispositionRequested()
                _ = machine.loadFinished()
            case .decidingDetached:
                machine.dispositionRequested()
                _ = machine.detached(1)
            case .becomingStream:
                machine.dispositionRequested()
                _ = machine.dispositionReceived(.becomeStream)
            case .finishing: _ = machine.loadFinished()
            case .ended: _ = machine.end()
            }
            return machine
        }

        var phase: Machine.Phase {
            switch self {
            case .waiting: .waiting
            case .loading: .loading
            case .deciding: .deciding(nil)
            case .decidingFinished: .deciding(.finished)
            case .decidingDetached: .deciding(.detached(1))
            case .becomingStream: .becomingStream
            case .finishing: .finishing
            case .ended: .ended
            }
        }

        var isActive: Bool { self != .waiting && self != .ended }
    }

    @Test(arguments: Stage.allCases)
    func eventsLeadToTheirStates(_ stage: Stage) {
        let machine = stage.machine()
        #expect(machine.phase == stage.phase)
        #expect(machine.isActive == stage.isActive)
        #expect(machine.hasEnded == (stage == .ended))
        #expect(machine.isSuspended == false)
        #expect(machine.deadline == (stage.isActive ? Self.start + .seconds(100) : nil))
    }

    @Test(arguments: Stage.allCases)
    func timeoutRunsOnlyWhileNotSuspended(_ stage: Stage) {
        var machine = stage.machine()
        machine.suspended(now: Self.start + .seconds(10))
        machine.suspended(now: Self.start + .seconds(20))
        #expect(machine.isSuspended == stage.isActive)
        #expect(machine.deadline == nil)
        #expect(machine.phase == stage.phase)
        let deadline = Self.later + .seconds(stage == .waiting ? 100 : 90)
        let expected: Machine.ResumeAction =
            switch stage {
            case .waiting: .begin(deadline: deadline)
            case .ended: .ignore
            default: .proceed(deadline: deadline)
            }
        #expect(machine.resumed(now: Self.later) == expected)
        #expect(machine.resumed(now: Self.later + .seconds(1)) == .ignore)
        #expect(machine.isSuspended == false)
        #expect(machine.deadline == (stage == .ended ? nil : deadline))
        #expect(machine.phase == (stage == .waiting ? .loading : stage.phase))
    }

    @Test(arguments: Stage.allCases)
    func dispositionIsRequestedOnlyWhileThereIsContent(_ stage: Stage) {
        var machine = stage.machine()
        machine.dispositionRequested()
        switch stage {
        case .loading: #expect(machine.phase == .deciding(nil))
        case .finishing: #expect(machine.phase == .deciding(.finished))
        default: #expect(machine.phase == stage.phase)
        }
    }

    @Test(
        arguments: [
            (.deciding, .receive, .pull, .loading),
            (.deciding, .becomeStream, .detach, .becomingStream),
            (.decidingFinished, .receive, .finish, .finishing),
            (.decidingFinished, .becomeStream, .refuseStream, .loading),
            (.decidingDetached, .receive, .closeAndFinish(1), .finishing),
            (.decidingDetached, .becomeStream, .becomeStream(1), .ended),
        ] as [(Stage, Machine.Disposition, Machine.DispositionAction, Machine.Phase)])
    func dispositionIsApplied(
        _ stage: Stage, _ disposition: Machine.Disposition, _ action: Machine.DispositionAction, _ phase: Machine.Phase
    ) {
        var machine = stage.machine()
        #expect(machine.dispositionReceived(disposition) == action)
        #expect(machine.phase == phase)
        #expect((machine.deadline == nil) == (phase == .ended))
    }

    @Test(
        arguments: [.waiting, .loading, .becomingStream, .finishing, .ended] as [Stage],
        [.receive, .becomeStream] as [Machine.Disposition])
    func unrequestedDispositionIsIgnored(_ stage: Stage, _ disposition: Machine.Disposition) {
        var machine = stage.machine()
        #expect(machine.dispositionReceived(disposition) == .ignore)
        #expect(machine.phase == stage.phase)
    }

    @Test(arguments: Stage.allCases)
    func transferFinishesAfterTheLoadAndTheDisposition(_ stage: Stage) {
        var machine = stage.machine()
        #expect(machine.loadFinished() == (stage == .loading || stage == .becomingStream))
        let phase: Machine.Phase =
            switch stage {
            case .loading, .becomingStream: .finishing
            case .deciding: .deciding(.finished)
            default: stage.phase
            }
        #expect(machine.phase == phase)
        #expect(machine.loadFinished() == false)
    }

    @Test(
        arguments: [
            (.waiting, .close(2), .waiting), (.loading, .closeAndFinish(2), .finishing),
            (.deciding, .keep, .deciding(.detached(2))), (.decidingFinished, .close(2), .deciding(.finished)),
            (.decidingDetached, .close(2), .deciding(.detached(1))), (.becomingStream, .becomeStream(2), .ended),
            (.finishing, .close(2), .finishing), (.ended, .close(2), .ended),
        ] as [(Stage, Machine.DetachAction, Machine.Phase)])
    func eachDetachedConnectionHasOneOwner(
        _ stage: Stage, _ action: Machine.DetachAction, _ phase: Machine.Phase
    ) {
        var machine = stage.machine()
        #expect(machine.detached(2) == action)
        #expect(machine.phase == phase)
    }

    @Test(arguments: Stage.allCases)
    func transferEndsOnce(_ stage: Stage) {
        var machine = stage.machine()
        let expected: Machine.EndAction =
            switch stage {
            case .ended: .ignore
            case .decidingDetached: .complete(closing: 1)
            default: .complete(closing: nil)
            }
        #expect(machine.end() == expected)
        #expect(machine.end() == .ignore)
        #expect(machine.phase == .ended)
        #expect(machine.deadline == nil)
        #expect(machine.resumed(now: Self.later) == .ignore)
    }
}
