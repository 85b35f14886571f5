/// A value stored outside its owner, which costs the owner eight bytes however large the value is; copies share it
/// until one changes.
package indirect enum Indirect<Value> {
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

extension Indirect: Sendable where Value: Sendable {}
extension Indirect: Equatable where Value: Equatable {}
extension Indirect: Hashable where Value: Hashable {}
