/// Carries something that belongs to a loop's thread through code that runs elsewhere; touched only back on the loop.
struct LoopBound<Value>: @unchecked Sendable {
    let value: Value

    init(_ value: Value) {
        self.value = value
    }
}

/// A value stored outside its owner, which costs the owner eight bytes however large the value is; copies share it
/// until one changes.
package indirect enum Apart<Value> {
    case value(Value)

    @inlinable package var value: Value {
        get {
            switch self {
            case .value(let value): value
            }
        }
        set { self = .value(newValue) }
    }
}

extension Apart: Sendable where Value: Sendable {}
extension Apart: Equatable where Value: Equatable {}
extension Apart: Hashable where Value: Hashable {}
