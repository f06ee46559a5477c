package chrome

// micros returns the number of microseconds at i in nanoseconds, rounded half away from zero, and
// the position after it. It returns a negative position for text that only decimal can read: signs,
// exponents, many digits, and anything that is not a number.
func micros(b []byte, i int) (int64, int) {
	first := i
	var n uint64
	for ; b[i]-'0' < 10; i++ {
		n = n*10 + uint64(b[i]-'0')
	}
	if i == first || i-first > 15 && (i-first > 16 || n > 1<<63/1000-1) {
		return 0, -1
	}
	n *= 1000
	if b[i] == '.' {
		i++
		for unit := uint64(100); b[i]-'0' < 10; i++ {
			if unit == 0 {
				if b[i] >= '5' {
					n++
				}
				for b[i]-'0' < 10 {
					i++
				}
				break
			}
			n += unit * uint64(b[i]-'0')
			unit /= 10
		}
	}
	if class[b[i]]&scalar != 0 {
		return 0, -1
	}
	return int64(n), i
}

// digits returns the integer at i and the position after it. It returns a negative position for
// text that only integer can read.
func digits(b []byte, i int) (int64, int) {
	first := i
	var n int64
	for ; b[i]-'0' < 10; i++ {
		n = n*10 + int64(b[i]-'0')
	}
	if i == first || i-first > 18 || class[b[i]]&scalar != 0 {
		return 0, -1
	}
	return n, i
}

// decimal returns the number b times 10^shift as an integer, rounded half away from zero,
// and false if b is not a number or the result does not fit into an int64.
func decimal(b []byte, shift int) (int64, bool) {
	i := 0
	negative := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		i++
	}
	var n uint64
	const most = 19 // digits that fit into n
	digits, dropped, next, scale := 0, 0, byte('0'), 0
	seen, point := false, false
	for ; i < len(b); i++ {
		c := b[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if c-'0' >= 10 {
			break
		}
		seen = true
		if point {
			scale--
		}
		switch {
		case digits == 0 && c == '0':
		case digits < most:
			n = n*10 + uint64(c-'0')
			digits++
		default:
			if dropped == 0 {
				next = c
			}
			dropped++
		}
	}
	if !seen {
		return 0, false
	}
	exponent, ok := exponent(b[i:])
	if !ok {
		return 0, false
	}
	if n == 0 {
		return 0, true
	}
	n, ok = scaled(n, exponent+scale+dropped+shift, next)
	if !ok {
		return 0, false
	}
	if negative {
		return -int64(n), true
	}
	return int64(n), true
}

// exponent reads the end of a number: nothing, or e and an integer, limited to ±10000.
func exponent(b []byte) (n int, ok bool) {
	if len(b) == 0 {
		return 0, true
	}
	if b[0] != 'e' && b[0] != 'E' {
		return 0, false
	}
	b = b[1:]
	negative := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative = b[0] == '-'
		b = b[1:]
	}
	if len(b) == 0 {
		return 0, false
	}
	for _, c := range b {
		if c-'0' >= 10 {
			return 0, false
		}
		n = min(n*10+int(c-'0'), 10000)
	}
	if negative {
		n = -n
	}
	return n, true
}

// scaled returns n times 10^e, rounded by the digit after n. If there is such a digit, n
// has 19 digits, so that any larger result does not fit.
func scaled(n uint64, e int, next byte) (uint64, bool) {
	const most = 1<<63 - 1
	for ; e > 0; e-- {
		if n > most/10 {
			return 0, false
		}
		n *= 10
	}
	for ; e < 0 && n > 0; e++ {
		next = '0' + byte(n%10)
		n /= 10
	}
	if e == 0 && next >= '5' {
		n++
	}
	return n, n <= most
}

// integer returns an integer, and false if b is not one or does not fit into an int64.
func integer(b []byte) (int64, bool) {
	for i, c := range b {
		if c-'0' >= 10 && (i > 0 || c != '-') {
			return 0, false
		}
	}
	return decimal(b, 0)
}
