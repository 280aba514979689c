package truncatedgofile

//line /dev/zero:1
func (