extension Float {
    /// To seven places, all that a `Float` from 0 to 1 holds: 0.7 that came as JSON goes out as 0.7 again.
    var decimal: Double { (Double(self) * 1e7).rounded() / 1e7 }
}
