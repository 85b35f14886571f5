/// The kinds of step that a simulation's trace tells apart.
enum SimulationStep: UInt8 {
    case turn
    case listening
    case connecting
    case connectRefused
    case connectFailed
    case connectHangs
    case established
    case accepted
    case queueFull
    case sent
    case arrived
    case received
    case windowClosed
    case finSent
    case finArrived
    case resetSent
    case resetArrived
    case inputShut
    case stalled
    case timedOut
    case closed
    case exhausted
    case lookedUp
    case lookupGivenUp
}
